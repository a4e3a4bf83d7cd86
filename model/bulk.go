package model

import (
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/zones"
)

// BulkAction is the action of a bulk on each model that it picks.
type BulkAction string

// The actions.
const (
	BulkReplan  BulkAction = "replan" // plan it anew, as its policy has changed
	BulkRun     BulkAction = "run"
	BulkEnable  BulkAction = "enable"
	BulkDisable BulkAction = "disable"
	BulkRemove  BulkAction = "remove"
	BulkCancel  BulkAction = "cancel" // take back the attempt that is queued or running, as a hold begins
	BulkZones   BulkAction = "zones"  // plan it anew, as newer zone data has come
)

var bulkActions = []string{string(BulkReplan), string(BulkRun), string(BulkEnable), string(BulkDisable), string(BulkRemove), string(BulkCancel), string(BulkZones)}

// Bulk is one wish about many models, which pollers carry out little by little.
type Bulk struct {
	Action   BulkAction
	Selector Selector
	Rate     policy.Rate  // at most so many models in a time; zero: as many as it can
	Force    bool         // run: supersede a queued or running attempt, and enable a model that was disabled by hand
	Reason   string       // disable: for the owners
	By       string       // who wants it; empty: nobody says
	Since    time.Time    // when it was wished for
	Zones    *zones.Notes // zones: the data it was planned by before
	Ticket   int          // of the attempt that was started last before: those that are larger were drawn since
}

// Validate refuses an action that this release does not know.
func (b *Bulk) Validate() error {
	if !slices.Contains(bulkActions, string(b.Action)) {
		return document.Refuse("action", "one of "+strings.Join(bulkActions, ", "), document.Found(string(b.Action)))
	}
	return b.Selector.Validate()
}

// Decide applies the bulk to a model of this status at now; false: it does not pick the model. Applied comes with the decision. To repeat it
// changes nothing: the bulk leaves models alone that were started since it began.
func (b *Bulk) Decide(m *Model, status Status, now time.Time) (decision Decision, outcome Outcome, picked bool) {
	// A model was started since the bulk began, or asked to start at once. The ticket shows attempts that are over.
	started := m.Ticket > b.Ticket || m.Running() && !m.StartedAt.Before(b.Since) || m.Waiting() && m.Trigger.ByHand() && !m.RefreshAt.Before(b.Since)
	switch {
	case !b.Selector.Matches(m, status):
		return Decision{}, Unchanged, false
	case status == StatusBroken:
		return Decision{}, Broken, true
	case b.Action == BulkReplan:
		decision, outcome = m.Replan(now)
	case b.Action == BulkZones:
		was, moved := b.Zones.Moved(m.Zone())
		if !moved {
			return Decision{}, Unchanged, true
		}
		decision, outcome = m.Rezone(was, now)
	case b.Action == BulkRun && started, b.Action == BulkCancel && m.Ticket > b.Ticket:
		return Decision{}, Already, true
	case b.Action == BulkCancel && !m.Running():
		return Decision{}, Unchanged, true
	case b.Action == BulkCancel: // the model is due again now, and nothing is counted
		decision = Decision{Event: EventCancel, Next: m.State, By: b.By}
		decision.Next.wait(now, m.Trigger.started(), "cancelled by hand")
		m.supersede(&decision, now)
	default:
		command := Command{Type: CommandType(b.Action), UID: m.UID, Force: b.Force, Reason: b.Reason, By: b.By}
		decision, outcome, _ = m.Execute(&command, Policies{}, true, now) // only a definition can be wrong
		if b.Action == BulkRun {                                          // a thousand of them do not precede the run of one model
			decision.Next.Trigger = TriggerHand
		}
	}
	return decision, outcome, true
}
