package flow

import (
	"cmp"
	"maps"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/zones"
)

// Bulk is a wish about many models, and how far pollers have come with it in one part of the queue.
type Bulk struct {
	store.BulkWish
	// Place is where the walk over the models goes on, behind Rest: uids that it has met and nobody has handled.
	Place store.Place
	Rest  []string
	// Trying are uids of models that a step was about to change and has not noted the results of.
	Trying []string
	// Seen counts the models that were visited, Picked those that the selector picks, Done those that were changed.
	Seen, Picked, Done int64
	// Others counts those that were not, by the reason.
	Others map[model.Outcome]int64
	// Next is from when on the rate lets the next one through; zero: none was let through.
	Next time.Time
	// EndedAt is when it was over; zero: it is not. Cancelled: somebody has ended it.
	EndedAt   time.Time
	Cancelled bool
	// Problem says why this release cannot carry it out: another one has to. Empty: it can.
	Problem string

	since, step string // as its hash has them
}

// refusedPrefix begins the fields that count refusals by their reasons.
const refusedPrefix = "refused:"

// Refusals is how many models were picked and refused.
func (b *Bulk) Refusals() (sum int64) {
	for outcome, count := range b.Others {
		if !Harmless(outcome) {
			sum += count
		}
	}
	return sum
}

// Harmless reports whether there was nothing to be done.
func Harmless(outcome model.Outcome) bool {
	return outcome == model.Unchanged || outcome == model.Already
}

// Count counts a model that was picked.
func (b *Bulk) Count(outcome model.Outcome) {
	b.Picked++
	switch {
	case outcome == model.Applied:
		b.Done++
	case b.Others == nil:
		b.Others = map[model.Outcome]int64{outcome: 1}
	default:
		b.Others[outcome]++
	}
}

// readBulk reads a hash. A field that this release cannot read becomes a problem.
func readBulk(id string, hash map[string]string) Bulk {
	b := Bulk{BulkWish: store.BulkWish{ID: id}, Place: store.Place(cmp.Or(hash["cursor"], string(store.WalkBegins))), since: hash["since"], step: hash["step"]}
	b.Action, b.By, b.Reason, b.Force = model.BulkAction(hash["action"]), hash["by"], hash["reason"], hash["force"] != ""
	b.Ticket, b.Size = int(redis.ParseInt(hash["ticket"])), redis.ParseInt(hash["size"])
	b.Seen, b.Picked, b.Done = redis.ParseInt(hash["seen"]), redis.ParseInt(hash["picked"]), redis.ParseInt(hash["done"])
	b.Rest, b.Trying = strings.Fields(hash["rest"]), strings.Fields(hash["trying"])
	for field, count := range hash {
		if outcome, is := strings.CutPrefix(field, refusedPrefix); is || Harmless(model.Outcome(field)) {
			if b.Others == nil {
				b.Others = map[model.Outcome]int64{}
			}
			b.Others[model.Outcome(outcome)] = redis.ParseInt(count)
		}
	}
	b.Cancelled = hash["ended"] == string(BulkCancelled)
	if release, own := strings.TrimPrefix(id, store.ZonesID), zones.InUse(); b.Action == model.BulkZones && release > own.Release {
		b.Problem = "expected zone data of " + release + " or newer, found " + own.String()
	}
	var errs [5]error
	b.Selector, errs[0] = model.ParseSelector(hash["selector"])
	b.Rate, errs[1] = policy.ReadRate(hash["rate"])
	b.Since, errs[2] = bulkTime("since", hash["since"])
	b.Next, errs[3] = bulkTime("next_at", cmp.Or(hash["next_at"], hash["since"]))
	b.EndedAt, errs[4] = bulkTime("ended_at", cmp.Or(hash["ended_at"], hash["since"]))
	if hash["ended"] == "" {
		b.EndedAt = time.Time{}
	}
	if err := cmp.Or(errs[0], errs[1], errs[2], errs[3], errs[4], b.Validate()); err != nil {
		b.Problem = err.Error()
	}
	return b
}

func bulkTime(field, text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, document.Refuse(field, "an RFC 3339 time", document.Found(text))
	}
	return at.UTC(), nil
}

// BulkState is how far a bulk is, in a word.
type BulkState string

// The states of a bulk.
const (
	BulkRunning    BulkState = "running"
	BulkDone       BulkState = "done"
	BulkCancelled  BulkState = "cancelled"
	BulkUnreadable BulkState = "unreadable" // by this release
)

// Over reports whether pollers have nothing more to do for it.
func (s BulkState) Over() bool { return s == BulkDone || s == BulkCancelled }

// State is how far it is, in a word.
func (b *Bulk) State() BulkState {
	switch {
	case b.Problem != "":
		return BulkUnreadable
	case b.EndedAt.IsZero():
		return BulkRunning
	case b.Cancelled:
		return BulkCancelled
	default:
		return BulkDone
	}
}

// add adds the counts of another part.
func (b *Bulk) add(other *Bulk) {
	if b.ID == "" {
		*b = *other
		b.Others = maps.Clone(other.Others)
		return
	}
	b.Size, b.Seen, b.Picked, b.Done = b.Size+other.Size, b.Seen+other.Seen, b.Picked+other.Picked, b.Done+other.Done
	if b.Others == nil {
		b.Others = map[model.Outcome]int64{}
	}
	store.AddUp(b.Others, other.Others)
	if other.Since.Before(b.Since) {
		b.Since = other.Since
	}
	switch { // it is over where it is over in all parts
	case b.EndedAt.IsZero() || other.EndedAt.IsZero():
		b.EndedAt = time.Time{}
	case other.EndedAt.After(b.EndedAt):
		b.EndedAt = other.EndedAt
	}
	b.Cancelled, b.Problem = b.Cancelled || other.Cancelled, cmp.Or(b.Problem, other.Problem)
}
