package operate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/backoff"
	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/hint"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/words"
)

// BulkRequest asks that the same is done to all models which a selector picks.
type BulkRequest struct {
	Action   model.CommandType // run, enable, disable or remove
	Selector string            // empty: all models
	Rate     string            // empty: no bound
	Reason   string            // of disable, for the owners
	Force    bool              // of run
	Sure     bool              // it may be about all models, or remove them
}

// Bulk is how far pollers have come with a bulk; in a queue of several parts, in all of them.
type Bulk struct {
	ID       string           `json:"id"`
	Action   model.BulkAction `json:"action"`
	Selector string           `json:"selector"` // empty: all models
	Rate     string           `json:"rate"`     // in each part; empty: no bound
	Force    bool             `json:"force"`
	By       string           `json:"by"`
	State    flow.BulkState   `json:"state"`
	Since    time.Time        `json:"since"`
	EndedAt  time.Time        `json:"ended_at"`
	Size     int64            `json:"size"`   // about how many models there are; 0: unknown
	Seen     int64            `json:"seen"`   // models that were looked at
	Picked   int64            `json:"picked"` // those of them that the selector picks
	Done     int64            `json:"done"`   // changed models
	Refused  int64            `json:"refused"`
	// Others counts unchanged models by reason: refused, or nothing to change.
	Others  map[model.Outcome]int64 `json:"others"`
	Problem string                  `json:"problem"`
}

// String describes a bulk in a line.
func (b *Bulk) String() string {
	text := fmt.Sprintf("%s %s: %s seen, %d picked, %d done", b.ID, b.State, words.Count(int(b.Seen), "model", "models"), b.Picked, b.Done)
	for _, outcome := range slices.Sorted(maps.Keys(b.Others)) {
		text += fmt.Sprintf(", %d %s", b.Others[outcome], strings.ReplaceAll(string(outcome), "_", " "))
	}
	return text
}

// WhereNow says in a line where the models of a run are now, of those that are picked still. It is empty if they are many.
func WhereNow(ctx context.Context, o Operator, b *Bulk) string {
	if b.Action != model.BulkRun || b.Picked == 0 {
		return ""
	}
	var counts []string
	for _, status := range []model.Status{model.StatusProcessing, model.StatusQueued, model.StatusParked, model.StatusDue} {
		found, err := o.Select(ctx, strings.TrimPrefix(b.Selector+",status=", ",")+string(status), true)
		if err != nil || found.Most { // it may pick another status
			return ""
		}
		counts = append(counts, fmt.Sprintf("%d %s", found.Models, status))
	}
	return "of them now: " + strings.Join(counts, ", ") + "\n"
}

func newBulk(b flow.Bulk) Bulk {
	found := Bulk{
		ID: b.ID, Action: b.Action, Selector: b.Selector.String(), Rate: b.Rate.String(), Force: b.Force, By: b.By, State: b.State(), Since: b.Since,
		Size: b.Size, Seen: b.Seen, Picked: b.Picked, Done: b.Done, Refused: b.Refusals(), Others: b.Others, Problem: b.Problem,
	}
	if found.State.Over() {
		found.EndedAt = b.EndedAt
	}
	return found
}

// BeginBulk begins a bulk, which pollers carry out.
func (o Operator) BeginBulk(ctx context.Context, r BulkRequest) (id string, err error) {
	wish := model.Bulk{Action: model.BulkAction(r.Action), Force: r.Force, Reason: r.Reason, By: o.By}
	if wish.Selector, err = model.ParseSelector(r.Selector); err != nil {
		return "", refused(err)
	}
	if wish.Rate, err = policy.ReadRate(r.Rate); err != nil {
		return "", refused(err)
	}
	switch {
	case r.Sure:
	case wish.Selector.All():
		return "", confirm("all models of the queue are picked")
	case wish.Action == model.BulkRemove:
		return "", confirm("models are removed")
	}
	if err = o.Queue.RequireWhole(); err != nil {
		return "", err
	}
	if id, err = flow.OfQueue(o.Queue).BeginNewBulk(ctx, wish); err != nil {
		err = hint.For(err, hint.CancelBulk, id)
	}
	return id, err
}

func confirm(because string) error {
	return hint.For(refuse("selector", "that somebody confirms it, as "+because, "nobody"), hint.ConfirmBulk, "")
}

// Bulk reads a bulk that goes on, or was over within a day.
func (o Operator) Bulk(ctx context.Context, id string) (Bulk, error) {
	bulk, is, err := flow.OfQueue(o.Queue).FindBulk(ctx, id)
	return newBulk(bulk), requireNamed(is, err, id, "the id of a bulk that is not over, or was within a day")
}

// Bulks lists the bulks that ended within a day, and then the others.
func (o Operator) Bulks(ctx context.Context) ([]Bulk, error) {
	found, err := flow.OfQueue(o.Queue).Bulks(ctx)
	return redis.Map(found, newBulk), err
}

// CancelBulk ends a bulk. Its changes stay.
func (o Operator) CancelBulk(ctx context.Context, id string) (Bulk, error) {
	cancelled, err := flow.OfQueue(o.Queue).CancelBulk(ctx, id)
	if err != nil {
		return Bulk{}, err
	}
	bulk, err := o.Bulk(ctx, id)
	if err == nil && !cancelled {
		err = fmt.Errorf("%s: expected a bulk that is not over, found it %s", bulk.ID, bulk.State)
	}
	return bulk, err
}

const pollEvery = 200 * time.Millisecond

// AwaitBulk shows how far a bulk is until it is over, and complains of each part of the queue in which no poller lives, so that it waits. If it is
// interrupted, the bulk goes on.
func (o Operator) AwaitBulk(ctx context.Context, id string, show func(Bulk), warn func(string)) (b Bulk, err error) {
	err = o.Queue.Each(func(part *store.Store) error {
		signs, err := part.Report().Liveness(ctx)
		if last, known := signs.Last[model.RolePoller]; err == nil && (!known || signs.Now.Sub(last) > model.LongestSilence) {
			warn(part.Keys.Queue + ": no poller is running; the bulk waits until one starts")
		}
		return err
	})
	for err == nil {
		if b, err = o.Bulk(ctx, id); err != nil {
			break
		}
		if show(b); b.State.Over() {
			return b, nil
		}
		if b.State == flow.BulkUnreadable {
			return b, errors.New(b.Problem)
		}
		backoff.Rest(ctx, pollEvery, nil)
	}
	if ctx.Err() != nil {
		return b, hint.For(errors.New("interrupted"), hint.WatchBulk, id)
	}
	return b, hint.For(err, hint.WatchBulk, id)
}

// Cancelled reports whether somebody has cancelled the bulk.
func (b *Bulk) Cancelled() bool { return b.State == flow.BulkCancelled }
