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
	name, field string // field: of the model
	key         string
	at          func(m *model.State) time.Time // at which it should stand there; zero: not at all
}

func timeSets(k *store.Keys) []timeSet {
	return []timeSet{
		{"due", "refresh_at", k.Due, func(m *model.State) time.Time { return m.Scores().Due }},
		{"urgent", "refresh_at", k.Urgent, func(m *model.State) time.Time { return m.Scores().Urgent }},
		{"running", "deadline_at", k.Running, func(m *model.State) time.Time { return m.DeadlineAt }},
		{"stale_at", "stale_at", k.StaleAt, func(m *model.State) time.Time { return m.Scores().StaleAt }},
		{"late", "stale_at", k.Late, func(m *model.State) time.Time { return m.Scores().Late }},
		{"stale", "stale_at", k.Stale, func(m *model.State) time.Time { return m.Scores().Stale }},
	}
}

func (s timeSet) orphan() kind {
	return kind{strings.ReplaceAll(s.name, "_", "-") + "-orphan", Error, "a model for it", repairOrphan}
}

func (s timeSet) check(m *inspect.Inspection) []Finding {
	is, at := m.Sets[s.key], s.at(&m.Record.State)
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
	for _, set := range c.timeSets {
		check := c.orphans(set.orphan())
		if c.wrongType[set.key] {
			continue
		}
		if err := c.in.EachMember(ctx, set.key, func(uids []string) error { return check(ctx, uids) }); err != nil {
			return err
		}
	}
	return nil
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
			for _, set := range c.timeSets {
				note(set.orphan(), m.Sets[set.key].In, "a place in the "+set.name+" set")
			}
			if len(findings) > 0 && findings[0].Code != part.code {
				return nil
			}
			return findings
		})
	}
}
