package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// ErrBroken says that the key of a model holds something else, or that its refresh_at is no time, so that it waits for nothing.
var ErrBroken = errors.New("the model is broken")

// ErrUnused says that a read found nothing, and that no daemon has used the queue: its name may be wrong.
var ErrUnused = errors.New("nothing was ever stored in it")

// unused returns ErrUnused, with the name of the queue, or nil.
func (c *Client) unused(ctx context.Context) error {
	queue := c.queue.Load()
	part := queue.Parts[0]
	whole, err := store.NewKeys(queue.Name) // its parts have no settings
	layout := part.Clients.Read.HGet(ctx, whole.Settings, "layout").Err()
	pollers, unknown := part.Clients.Read.ZRange(ctx, part.Keys.Pollers, 0, 0).Result()
	if err != nil || unknown != nil || len(pollers) > 0 || !redis.Missing(layout) {
		return nil // or the user may not ask
	}
	return fmt.Errorf("queue %s: %w", queue.Name, ErrUnused)
}

// Get reads a model and its state, or returns ErrUnknownModel or ErrBroken. It reads neither the payload nor the policy in force. Its word for the state
// is Status(now, true): an attempt counts as queued until a worker says that it begins.
func (c *Client) Get(ctx context.Context, uid string) (model.Model, error) {
	part := c.queue.Load().Of(uid)
	hash, err := part.Clients.Read.HGetAll(ctx, part.Keys.Model(uid)).Result()
	record := store.NewRecord(uid, hash)
	switch _, wrong := redis.WrongType(err); {
	case wrong:
		err = fmt.Errorf("%w: %w", ErrBroken, err)
	case err == nil && !record.Exists:
		if err = c.unused(ctx); errors.Is(err, ErrUnused) {
			err = fmt.Errorf("%w: %w", ErrUnknownModel, err)
		}
		return model.Model{}, cmp.Or(err, ErrUnknownModel)
	case record.RefreshUnreadable() && record.Status(time.Time{}, true) == model.StatusFinished:
		err = fmt.Errorf("%w: %w", ErrBroken, document.Refuse("refresh_at", "an RFC 3339 time", document.Found(hash["refresh_at"])))
	}
	return record.Model, redis.Wrap(err, "read "+uid)
}

// History reads the attempts that ended last, at most n, newest first.
func (c *Client) History(ctx context.Context, uid string, n int) ([]model.Attempt, error) {
	past, err := report.Of(c.queue.Load().Of(uid)).History(ctx, uid)
	if len(past) == 0 && err == nil {
		err = c.unused(ctx)
	}
	return past[:max(0, min(n, len(past)))], err
}

// statuses are those that List knows.
var statuses = []string{"disabled", "failing", "late", "parked", "running", "stale"}

// List returns the sorted uids of the models with all labels, and a status of disabled, failing, late, parked, running or stale, of a selector such as
// "status=failing,tenant=t1": at most limit (0: 1,000) from the first one behind after on. It goes through all models of the first term.
func (c *Client) List(ctx context.Context, selector, after string, limit int) (uids []string, err error) {
	queue := c.queue.Load()
	if _, err := setsOf(queue.Parts[0], selector); err != nil {
		return nil, err
	}
	if limit = cmp.Or(limit, 1000); limit < 1 {
		return nil, document.Refuse("limit", "at least 1", fmt.Sprint(limit))
	}
	bound := func() { slices.Sort(uids); uids = slices.Compact(uids); uids = uids[:min(limit, len(uids))] }
	err = queue.Each(func(part *store.Store) error {
		sets, _ := setsOf(part, selector)
		if err := spell(ctx, part, sets); err != nil {
			return err
		}
		return scan(ctx, part, sets, func(page []string) {
			uids = append(uids, slices.DeleteFunc(page, func(uid string) bool { return uid <= after })...)
			if len(uids) > 2*limit+1000 {
				bound()
			}
		})
	})
	if bound(); len(uids) == 0 && err == nil {
		err = c.unused(ctx)
	}
	return uids, err
}

// set is a set of the models of a part.
type set struct {
	key    string
	scored bool
	below  float64 // it counts those with a lower score only; 0: all
}

// setsOf returns the sets whose common models a selector picks.
func setsOf(part *store.Store, selector string) (sets []set, err error) {
	for term := range strings.SplitSeq(selector, ",") {
		term = strings.TrimSpace(term)
		name, value, _ := strings.Cut(term, "=")
		switch isLabel := model.ValidateLabel(name, "a") == nil && !strings.ContainsAny(value, "|="); {
		case name == model.SelectStatus && slices.Contains(statuses, value):
			one := set{part.Keys.StatusSets(model.Status(value))[0], true, 0}
			if sets = append(sets, one); value == "late" { // its set has also models that never had a success
				one.below = float64(model.Never.UnixMilli())
				sets = append(sets, one)
			}
		case isLabel && model.ValidateLabel(name, value) == nil:
			sets = append(sets, set{part.Keys.Label(term), false, 0})
		case isLabel && strings.Contains(term, "="):
			return nil, document.Refuse("selector", "for "+name+" a label: 1-60 letters, digits or _.:/@+-", document.Found(value))
		default:
			want := "labels such as tenant=t1 and one status of disabled, failing, late, parked, running or stale, with commas between them"
			return nil, document.Refuse("selector", want, document.Found(term))
		}
	}
	return sets, nil
}

// spell takes a host in small letters, as those of URLs are stored, unless a label has it as it was written.
func spell(ctx context.Context, part *store.Store, sets []set) error {
	for i, one := range sets {
		host, is := strings.CutPrefix(one.key, part.Keys.Label("host="))
		if !is || host == strings.ToLower(host) {
			continue
		}
		n, err := part.Clients.Read.SCard(ctx, one.key).Result()
		if err != nil {
			return fmt.Errorf("list models: %w", err)
		}
		if n == 0 {
			sets[i].key = part.Keys.Label("host=" + strings.ToLower(host))
		}
	}
	return nil
}

// scan hands over the models that are in all sets, page by page, in no order, and some twice.
func scan(ctx context.Context, part *store.Store, sets []set, visit func(page []string)) error {
	for cursor := uint64(0); ; {
		page, next, err := store.ScanMembers(ctx, part.Clients.Read, sets[0].key, sets[0].scored, cursor)
		for _, one := range sets[1:] {
			if err == nil && len(page) > 0 {
				page, err = one.keep(ctx, part, page)
			}
		}
		if visit(page); err != nil || next == 0 {
			return redis.Wrap(err, "list models")
		}
		cursor = next
	}
}

// keep returns those of a page that are in the set.
func (s set) keep(ctx context.Context, part *store.Store, page []string) (kept []string, err error) {
	var in []bool
	if s.scored {
		var scores []float64
		scores, err = part.Clients.Read.ZMScore(ctx, s.key, page...).Result()
		in = redis.Map(scores, func(score float64) bool { return score != 0 && (s.below == 0 || score < s.below) })
	} else {
		in, err = part.Clients.Read.SMIsMember(ctx, s.key, redis.Anys(page)...).Result()
	}
	for i, is := range in {
		if is {
			kept = append(kept, page[i])
		}
	}
	return kept, err
}
