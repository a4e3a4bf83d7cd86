package doctor

import (
	"context"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/store/inspect"
	"github.com/refreshd/refreshd/model"
)

// timeSet is a sorted set of models by a time that their state tells.
type timeSet struct {
	name, field string                         // field: of the model
	at          func(m *model.State) time.Time // at which it should stand there; zero: not at all
}

// timeSets are those of inspect.Part.TimeSets, in their order.
var timeSets = []timeSet{
	{"due", "refresh_at", func(m *model.State) time.Time { return m.Scores().Due }},
	{"urgent", "refresh_at", func(m *model.State) time.Time { return m.Scores().Urgent }},
	{"running", "deadline_at or the end of its silence", (*model.State).ExpiresAt},
	{"stale_at", "stale_at", func(m *model.State) time.Time { return m.Scores().StaleAt }},
	{"late", "stale_at", func(m *model.State) time.Time { return m.Scores().Late }},
	{"stale", "stale_at", func(m *model.State) time.Time { return m.Scores().Stale }},
}

func (s timeSet) orphan() kind {
	return kind{strings.ReplaceAll(s.name, "_", "-") + "-orphan", Error, "a model for it", repairOrphan}
}

func (s timeSet) check(m *inspect.Inspection, is inspect.Membership) []Finding {
	at := s.at(&m.Record.State)
	if is.Unknown || at.IsZero() && !is.In || !at.IsZero() && is.At(at) {
		return nil
	}
	wrong := kind{strings.ReplaceAll(s.name, "_", "-") + "-wrong", Error, "in the " + s.name + " set at its " + s.field + " ", repairSets}
	f := wrong.wanting(model.FormatTime(at)).at(m.Record.UID, "it is not there")
	switch {
	case at.IsZero():
		f.Want, f.Found = "not in the "+s.name+" set", "it stands there at "+formatScore(is.Score)
	case is.In:
		f.Found = "there at " + formatScore(is.Score)
	}
	return []Finding{f}
}

// sets checks that a model exists for each member of the time sets. The check of a model tells whether it stands where it should.
func (c *checker) sets(ctx context.Context) error {
	for i, key := range c.in.TimeSets() {
		if c.wrongType[key] {
			continue
		}
		if err := c.eachPicked(ctx, key, true, c.in.WithoutModel, c.orphans(timeSets[i].orphan())); err != nil {
			return err
		}
	}
	return nil
}

// eachPicked checks those members of a set, sorted or not, that are picked.
func (c *checker) eachPicked(
	ctx context.Context, key string, sorted bool, pick func(context.Context, []string) ([]string, error), check func(context.Context, []string) error,
) error {
	return store.ReadAhead(ctx, func(ctx context.Context, visit func([]string) error) error {
		return c.in.EachMember(ctx, key, sorted, visit)
	}, func(ctx context.Context, uids []string) (func() error, error) {
		picked, err := pick(ctx, uids)
		return func() error { return check(ctx, picked) }, err
	})
}

// orphans returns a check of uids of which the walk came by a part: one without a model is an orphan.
// All parts of it are reported together, when the walk comes by the first of them.
func (c *checker) orphans(part kind) func(context.Context, []string) error {
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
			for i, set := range timeSets {
				note(set.orphan(), m.Sets[i].In, "a place in the "+set.name+" set")
			}
			if len(findings) > 0 && findings[0].Code != part.code {
				return nil
			}
			return findings
		})
	}
}
