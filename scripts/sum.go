package scripts

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model"
)

// What stands in every part of a queue, added up.

// HoldSum is a hold in all parts of a queue.
type HoldSum struct {
	model.Hold
	Parked   int64 // models that wait for it
	Released bool  // its models are being let go
}

// Holds reads the holds of all parts, oldest first.
func (q *Queue) Holds(ctx context.Context) (sums []HoldSum, err error) {
	err = q.Each(func(part *Store) error {
		now, err := part.Now(ctx)
		if err != nil {
			return err
		}
		holds, problem, err := part.Holds(ctx)
		if err := cmp.Or(err, problem); err != nil {
			return err
		}
		for _, hold := range holds {
			parked, err := part.CountParked(ctx, hold.Gate())
			if err != nil {
				return err
			}
			at := slices.IndexFunc(sums, func(sum HoldSum) bool { return sum.ID == hold.ID })
			if at < 0 {
				sums, at = append(sums, HoldSum{Hold: hold}), len(sums)
			}
			sums[at].Parked += parked
			sums[at].Released = hold.Ended(now)
		}
		return nil
	})
	return sums, err
}

// LimitUses reads the keys of limits of all parts, in their order; without keys, of all that count anything or were set: it walks over the keys of
// Redis then.
func (q *Queue) LimitUses(ctx context.Context, keys ...string) ([]LimitUse, error) {
	sums := map[string]*LimitUse{}
	err := q.Each(func(part *Store) error {
		uses, err := part.LimitUses(ctx, keys...)
		for _, use := range uses {
			sum := sums[use.Limit.Name]
			if sum == nil {
				sum = &LimitUse{Limit: use.Limit}
				sums[use.Limit.Name] = sum
			}
			sum.Running, sum.Parked = sum.Running+use.Running, sum.Parked+use.Parked
			if !use.Free.IsZero() {
				sum.Free = use.Free
			}
			if use.Set {
				sum.Set, sum.Limit = true, use.Limit
			}
		}
		return err
	})
	all := make([]LimitUse, 0, len(sums))
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		all = append(all, *sums[name])
	}
	return all, err
}

// Circuits reads the circuits of these keys from all parts, or those of all keys; open ones first. One that is open in several parts is told as where
// it opened first.
func (q *Queue) Circuits(ctx context.Context, keys ...string) ([]KeyCircuit, error) {
	sums := map[string]*KeyCircuit{}
	err := q.Each(func(part *Store) error {
		circuits, err := part.Circuits(ctx, keys...)
		for i := range circuits {
			if sums[circuits[i].Key] == nil {
				sums[circuits[i].Key] = &KeyCircuit{Key: circuits[i].Key}
			}
			sums[circuits[i].Key].add(&circuits[i])
		}
		return err
	})
	all := make([]KeyCircuit, 0, len(sums))
	for _, sum := range sums {
		all = append(all, *sum)
	}
	slices.SortFunc(all, func(a, b KeyCircuit) int {
		if a.Open() != b.Open() {
			return map[bool]int{true: -1, false: 1}[a.Open()]
		}
		return cmp.Compare(a.Key, b.Key)
	})
	return all, err
}

func (c *KeyCircuit) add(other *KeyCircuit) {
	c.Opened, c.Parked, c.Recent = c.Opened+other.Opened, c.Parked+other.Parked, c.Recent+other.Recent
	if !other.Open() {
		return
	}
	c.OpenParts++
	if !c.Open() || other.OpenedAt.Before(c.OpenedAt) {
		c.CircuitState, c.By, c.Reason = other.CircuitState, other.By, other.Reason
	}
}

// QueueCircuit adds up what all parts have counted. The settings are those of the first.
func (q *Queue) QueueCircuit(ctx context.Context) (sum QueueCircuitStatus, err error) {
	err = q.Each(func(part *Store) error {
		status, err := part.QueueCircuit(ctx)
		if part == q.Parts[0] {
			sum = status
			return err
		}
		sum.Successes, sum.Failures = sum.Successes+status.Successes, sum.Failures+status.Failures
		return err
	})
	return sum, err
}

// FindBulk reads a bulk of all parts; false: none of that name is going on, or was within a day.
func (q *Queue) FindBulk(ctx context.Context, id string) (sum Bulk, found bool, err error) {
	err = q.Each(func(part *Store) error {
		bulk, there, err := part.ReadBulk(ctx, id)
		if there && err == nil {
			sum.add(&bulk)
		}
		found = found || there
		return err
	})
	return sum, found, err
}

// Bulks lists the bulks of all parts: those that were over within a day first, then the others, the oldest first.
func (q *Queue) Bulks(ctx context.Context) ([]Bulk, error) {
	sums := map[string]*Bulk{}
	err := q.Each(func(part *Store) error {
		ended, err := part.EndedBulks(ctx)
		if err != nil {
			return err
		}
		open, err := part.Bulks(ctx)
		for _, bulk := range slices.Concat(ended, open) {
			if sums[bulk.ID] == nil {
				sums[bulk.ID] = &Bulk{}
			}
			sums[bulk.ID].add(&bulk)
		}
		return err
	})
	all := make([]Bulk, 0, len(sums))
	for _, sum := range sums {
		all = append(all, *sum)
	}
	slices.SortFunc(all, func(a, b Bulk) int {
		if over := a.State().Over(); over != b.State().Over() {
			return map[bool]int{true: -1, false: 1}[over]
		}
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID))
	})
	return all, err
}

// add adds what another part has of the bulk.
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
	for outcome, count := range other.Others {
		b.Others[outcome] += count
	}
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

// BeginNewBulk begins a bulk in every part, under an id of its own. After an error it may have begun in some.
func (q *Queue) BeginNewBulk(ctx context.Context, wish model.Bulk) (id string, err error) {
	id = string(wish.Action) + "-" + strings.ToLower(rand.Text()[:8])
	if err := q.BeginBulk(ctx, id, wish); err != nil {
		return id, fmt.Errorf("%w; refreshd bulk cancel %s ends what has begun", err, id)
	}
	return id, nil
}

// CancelHeld begins a bulk that takes back what runs of the models which a hold picks.
func (q *Queue) CancelHeld(ctx context.Context, hold *model.Hold) (id string, err error) {
	runs := model.SelectStatus + "=" + string(model.StatusRunning)
	selector, err := model.ParseSelector(strings.Trim(hold.Selector.String()+","+runs, ","))
	if err != nil {
		return "", err
	}
	id = "cancel-" + hold.ID
	return id, q.BeginBulk(ctx, id, model.Bulk{Action: model.BulkCancel, Selector: selector, By: hold.By, Since: hold.Since})
}

// NewHoldID is a name for a hold to which nobody has given one.
func NewHoldID() string { return "h" + strings.ToLower(rand.Text()[:6]) }

// PartRejected are rejected messages of one part of a queue.
type PartRejected struct {
	Part    *Store
	Entries []Rejected
}

// Rejected reads those rejected messages of all parts that are wanted, oldest first in each.
func (q *Queue) Rejected(ctx context.Context, wanted func(*Rejected) bool) (found []PartRejected, err error) {
	err = q.Each(func(part *Store) error {
		entries, err := part.Rejected(ctx)
		entries = slices.DeleteFunc(entries, func(r Rejected) bool { return !wanted(&r) })
		found = append(found, PartRejected{part, entries})
		return err
	})
	return found, err
}

// CountPolicies counts the models that use each policy, of at most about so many models in each part; all: there are no others.
func (q *Queue) CountPolicies(ctx context.Context, most int) (uses map[string]int, models int, all bool, err error) {
	uses, all = map[string]int{}, true
	err = q.Each(func(part *Store) error {
		looked := 0
		err := part.EachModel(ctx, "", func(uids []string) error {
			if looked >= most {
				return errCounted
			}
			names, err := part.PoliciesOf(ctx, uids)
			for _, name := range names {
				uses[cmp.Or(name, DefaultPolicyName)]++
			}
			looked += len(uids)
			return err
		})
		models += looked
		if errors.Is(err, errCounted) {
			all, err = false, nil
		}
		return err
	})
	return uses, models, all, err
}

// errCounted ends a walk that has counted enough.
var errCounted = errors.New("counted enough")
