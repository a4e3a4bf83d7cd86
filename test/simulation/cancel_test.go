package simulation

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/store"
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
		message, err := model.DecodeMessage([]byte(claimed[1:]))
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

// countingCancels lets what a hold takes back count as an attempt.
type countingCancels struct{ store.Pool }

func (s countingCancels) Read(ctx context.Context, uids []string, commands []*model.Command) (*store.Snapshot, error) {
	snapshot, err := s.Store.Read(ctx, uids, commands)
	if err == nil && len(commands) > 0 && commands[0].Type == model.CommandType(model.BulkCancel) {
		for _, record := range snapshot.Records {
			record.AttemptNo++
		}
	}
	return snapshot, err
}

// forgiving believes a result of an idle model, whatever attempt it is of.
type forgiving struct {
	store.Pool
	claimed []store.Claimed
}

func (s *forgiving) Claim(ctx context.Context, owner string, limit int, lease time.Duration) (claim store.Claim, err error) {
	claim, err = s.Store.Claim(ctx, owner, limit, lease)
	s.claimed = claim.Messages
	return claim, err
}

func (s *forgiving) Read(ctx context.Context, uids []string, commands []*model.Command) (*store.Snapshot, error) {
	snapshot, err := s.Store.Read(ctx, uids, commands)
	for _, claimed := range s.claimed {
		message, decodeErr := model.DecodeMessage([]byte(claimed.Raw()))
		if err != nil || decodeErr != nil || claimed.FromControl() || snapshot.Records[message.UID] == nil {
			continue
		}
		record := snapshot.Records[message.UID]
		if record.Exists && !record.Running() && record.LastAttemptUID != message.AttemptUID && !record.Disabled {
			record.AttemptUID, record.StartedAt, record.DeadlineAt = message.AttemptUID, record.RefreshAt, model.Never
		}
	}
	return snapshot, err
}

// cancelsAnything takes back also what was started since a hold began.
type cancelsAnything struct{ store.Pool }

func (s cancelsAnything) Bulks(ctx context.Context) ([]store.Bulk, error) {
	bulks, err := s.Store.Bulks(ctx)
	for i := range bulks {
		if bulks[i].Action == model.BulkCancel {
			bulks[i].Ticket = 1 << 40
		}
	}
	return bulks, err
}

// halfHearted looks at one model less than there are when a hold takes back what runs.
type halfHearted struct{ store.Pool }

func (s halfHearted) WalkModels(ctx context.Context, selector model.Selector, from store.Place, least int) ([]string, store.Place, error) {
	uids, to, err := s.Store.WalkModels(ctx, selector, from, least)
	if len(uids) > 1 && len(selector.Only(model.SelectStatus)) > 0 {
		uids = uids[1:]
	}
	return uids, to, err
}
