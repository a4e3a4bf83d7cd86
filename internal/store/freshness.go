package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/model"
)

// StaleModel is a model that is stale, or was; Since is zero where nobody knows since when.
type StaleModel struct {
	UID   string
	Since time.Time
}

// LongestStale reads the first so many models that are stale for longest, from a place of their order on.
func (s Report) LongestStale(ctx context.Context, from, count int) ([]StaleModel, error) {
	found, err := s.Clients.Read.ZRangeWithScores(ctx, s.Keys.Stale, int64(from), int64(from+count-1)).Result()
	models := make([]StaleModel, len(found))
	for i, z := range found {
		models[i] = StaleModel{fmt.Sprint(z.Member), time.UnixMilli(int64(z.Score)).UTC()}
	}
	return models, Wrap(err, "read which models are stale")
}

// JournalReach is since when the journal tells of everything; zero: it tells of nothing.
func (s Report) JournalReach(ctx context.Context) (time.Time, error) {
	first, err := s.Clients.Read.XRangeN(ctx, s.Keys.Journal, "-", "+", 1).Result()
	if err != nil || len(first) == 0 {
		return time.Time{}, Wrap(err, "read the journal")
	}
	return readJournalEntry(first[0].Values).At, nil
}

// EachChangeOfFreshness hands over what the journal tells of changes of freshness, of each model in their order.
func (s Report) EachChangeOfFreshness(ctx context.Context, visit func(model.JournalEntry)) error {
	return s.EachEntry(ctx, time.Time{}, func(entry model.JournalEntry) error {
		if entry.ChangesFreshness() {
			visit(entry)
		}
		return nil
	})
}

// Past is the freshness of models at an instant that is past.
type Past struct {
	Counts FreshnessCounts
	// Stale are those that were stale then, for longest first.
	Stale []StaleModel
}

// createdAfter finds the models that were created after an instant, with their freshness of now. The revision of a model begins with the Unix ms of
// its creation and grows by one with each transition, much slower than time does. So a model counts as older unless its revision is later.
func (s Report) createdAfter(ctx context.Context, at time.Time) (map[string]model.Freshness, error) {
	younger := map[string]model.Freshness{}
	err := s.EachSelected(ctx, model.Selector{}, func(uids []string) error {
		fields, err := ReadEach(ctx, s.Clients.Read, "read since when there are models", uids, func(pipe redis.Pipeliner, uid string) *redis.SliceCmd {
			return pipe.HMGet(ctx, s.Keys.Model(uid), fieldRev, "freshness")
		})
		for i, uid := range uids {
			if is := texts(any(fields[i])); len(is) == 2 && parseInt(is[0]) > at.UnixMilli() {
				younger[uid] = model.Freshness(is[1])
			}
		}
		return err
	})
	return younger, err
}

// PastFreshness tells the freshness at an instant that the journal reaches, from the counts of now, by undoing what was told since;
// picks says which models count.
func (s Report) PastFreshness(ctx context.Context, at time.Time, counts FreshnessCounts, picks func(uid string) bool) (Past, error) {
	past := Past{Counts: counts}
	was, since := map[string]model.Freshness{}, map[string]time.Time{}
	told := map[string]bool{} // the journal tells since when the model is watched, or until when it was
	err := s.EachChangeOfFreshness(ctx, func(e model.JournalEntry) {
		_, later := was[e.UID]
		switch {
		case !picks(e.UID):
		case !e.At.After(at):
			since[e.UID] = e.At
		default:
			past.Counts[e.Freshness]--
			past.Counts[e.FreshnessWas]++
			told[e.UID] = told[e.UID] || e.Freshness == "" || e.FreshnessWas == ""
			if !later {
				was[e.UID] = e.FreshnessWas
			}
		}
	})
	if err != nil {
		return past, err
	}
	younger, err := s.createdAfter(ctx, at)
	if err != nil {
		return past, err
	}
	for uid, freshness := range younger { // the journal tells nothing of many creates at once
		if first, changed := was[uid]; changed {
			freshness = first
		}
		if !told[uid] && freshness != "" && picks(uid) {
			past.Counts[freshness]--
			was[uid] = ""
		}
	}
	for uid, freshness := range was {
		if freshness == model.FreshnessStale {
			past.Stale = append(past.Stale, StaleModel{uid, since[uid]})
		}
	}
	for from := 0; ; from += ScanCount { // those that are stale since
		found, err := s.LongestStale(ctx, from, ScanCount)
		if err != nil {
			return past, err
		}
		for _, one := range found {
			if _, changed := was[one.UID]; !changed && picks(one.UID) {
				past.Stale = append(past.Stale, one)
			}
		}
		if len(found) < ScanCount || len(past.Stale) >= ScanCount {
			break
		}
	}
	slices.SortFunc(past.Stale, func(a, b StaleModel) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.UID, b.UID)) })
	return past, nil
}
