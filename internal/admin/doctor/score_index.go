package doctor

import (
	"context"
	"slices"
	"strings"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/store/inspect"
	"github.com/refreshd/refreshd/model"
)

func setOrphan(set store.ScoreIndex) kind {
	if slices.Contains([]string{"failing", "disabled", "parked"}, set.Name) { // they share a code, which is known by now
		return indexOrphan
	}
	return kind{setCode(set) + "-orphan", Error, "a model for it", repairOrphan}
}

func setCode(set store.ScoreIndex) string { return strings.ReplaceAll(set.Name, "_", "-") }

func place(set store.ScoreIndex) string { return "a place in the " + set.Name + " set" }

// checkSet checks that a model is in a set with the score of its state.
func checkSet(set store.ScoreIndex, m *inspect.Inspection, is inspect.Membership) []Finding {
	at := set.Score(&m.Record.State)
	if is.Unknown || at.IsZero() && !is.In || !at.IsZero() && is.At(at) {
		return nil
	}
	wrong := kind{setCode(set) + "-wrong", Error, "in the " + set.Name + " set at its " + set.Field + " ", repairSets}
	f := wrong.wanting(model.FormatTime(at)).at(m.Record.UID, "it is not there")
	switch {
	case at.IsZero():
		f.Want, f.Found = "not in the "+set.Name+" set", "it stands there at "+formatScore(is.Score)
	case is.In:
		f.Found = "there at " + formatScore(is.Score)
	}
	return []Finding{f}
}

// sets checks that a model exists for each member of the sorted sets of models. The check of a model also checks its scores.
func (c *checker) sets(ctx context.Context) error {
	for _, set := range store.ScoreIndexes {
		key := set.Key(&c.store.Keys)
		if c.wrongType[key] {
			continue
		}
		if err := c.eachPicked(ctx, key, true, c.in.WithoutModel, c.orphans(place(set))); err != nil {
			return err
		}
	}
	return nil
}

// eachPicked checks those members of a set, sorted or not, that are picked.
func (c *checker) eachPicked(
	ctx context.Context, key string, sorted bool, pick func(context.Context, []string) ([]string, error), check func(context.Context, []string) error,
) error {
	return redis.ReadAhead(ctx, func(ctx context.Context, visit func([]string) error) error {
		return c.in.EachMember(ctx, key, sorted, visit)
	}, func(ctx context.Context, uids []string) (func() error, error) {
		picked, err := pick(ctx, uids)
		return func() error { return check(ctx, picked) }, err
	})
}

// orphans returns a check of uids that the walk has met by the named part: a uid without a model is an orphan. It reports all parts of an orphan
// together, when the walk meets the first.
func (c *checker) orphans(part string) func(context.Context, []string) error {
	return func(ctx context.Context, uids []string) error {
		without, err := c.in.WithoutModel(ctx, uids)
		if err != nil {
			return err
		}
		return c.reread(ctx, without, func(m *inspect.Inspection) (findings []Finding) {
			note := func(k kind, there bool, what string) {
				if there && !m.Record.Exists {
					findings = append(findings, k.at(m.Record.UID, "none, but "+what))
				}
			}
			note(payloadOrphan, m.Payload, "a payload") // in the order of the walk
			note(historyOrphan, m.History, "a history")
			for i, set := range store.ScoreIndexes {
				note(setOrphan(set), m.Sets[i].In, place(set))
			}
			if len(findings) > 0 && findings[0].Found != "none, but "+part {
				return nil
			}
			return findings
		})
	}
}
