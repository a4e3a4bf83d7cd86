package simulation

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model"
)

// cancelHeld does what `refreshd hold --cancel` does when the hold has begun: it takes back what runs of the models that the hold picks.
func (o *operatorRole) cancelHeld(ctx context.Context, hold *model.Hold) error {
	runs := model.SelectStatus + "=" + string(model.StatusRunning)
	selector, err := model.ParseSelector(strings.Trim(hold.Selector.String()+","+runs, ","))
	if err != nil {
		return err
	}
	*o.steers++
	id := "b" + strconv.Itoa(*o.steers)
	_, err = o.server.store.Fleet().BeginBulk(ctx, id, model.Bulk{Action: model.BulkCancel, Selector: selector, By: id, Since: hold.Since})
	return err
}

// noteRunning notes the attempts that a bulk is to take back which begins: those that were started before.
func (w *wish) noteRunning(s *snapshot) {
	if w.Action != model.BulkCancel {
		return
	}
	w.running = map[string]string{}
	for uid, hash := range s.models {
		m := parse(uid, hash, "")
		if m.Running() && m.Ticket <= w.Ticket && w.Selector.Matches(m, model.StatusProcessing, time.Time{}) {
			w.running[uid] = m.AttemptUID
		}
	}
}

// checkCancelled checks that an attempt which was taken back as a hold began counts for nothing.
func (p *replay) checkCancelled(m *model.Model, decision model.Decision) error {
	if decision.Event != model.EventCancel {
		return nil
	}
	was, is := m.State, decision.Next
	switch {
	case is.AttemptNo != max(0, was.AttemptNo-1):
		return fmt.Errorf("a cancelled attempt counts: it was number %d, the next is behind %d", was.AttemptNo, is.AttemptNo)
	case is.FingerprintID != was.FingerprintID || !is.FailingSince.Equal(was.FailingSince) || is.Disabled || is.TotalRetries != was.TotalRetries:
		return fmt.Errorf("a cancelled attempt counts as a failure: %+v", is)
	}
	return nil
}

// checkTakenBack checks that a bulk that is over has taken back whatever ran when it began, and ran on.
func (o *oracle) checkTakenBack(id string, was, is map[string]string) error {
	if was["ended"] != "" || is["ended"] != "done" {
		return nil
	}
	for uid, attemptUID := range o.wishes[id].running {
		if facts := o.attempts[attemptUID]; facts.ended == "" {
			return fmt.Errorf("the bulk %s is over, and the attempt %s of %s runs on: %v", id, attemptUID, uid, is)
		}
	}
	return nil
}

// checkLateResults checks that what comes of an attempt which was superseded is stale.
func (p *replay) checkLateResults() error {
	late := 0
	for _, claimed := range p.consumed {
		message, err := model.Wire{}.DecodeMessage([]byte(claimed[1:]))
		if claimed[0] != 'o' || err != nil || message.Type == "" {
			continue
		}
		facts, was, is := p.oracle.attempts[message.AttemptUID], p.before.models[message.UID], p.after.models[message.UID]
		lives := was != nil && is != nil && !p.forgotten[message.UID]
		if facts != nil && facts.model == message.UID && superseded[facts.ended] && lives && was["last_attempt_uid"] != message.AttemptUID {
			late++
		}
	}
	if stale := p.after.grown(p.before, "stale"); stale < late {
		return fmt.Errorf("%d results of attempts that were taken back are not counted as stale, but %d: %q", late, stale, p.consumed)
	}
	return nil
}

// superseded are the events that take the fence from an attempt which nobody has answered.
var superseded = map[model.Event]bool{model.EventCancel: true, model.EventDisable: true, model.EventRun: true}
