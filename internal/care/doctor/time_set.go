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
	// place is where a model stands, and at which time it should; zero: not at all.
	place func(*inspect.Inspection) (is inspect.Membership, at time.Time)
}

var timeSets = []timeSet{
	{"due", "refresh_at", func(m *inspect.Inspection) (inspect.Membership, time.Time) { return m.Due, m.Record.Scores().Due }},
	{"urgent", "refresh_at", func(m *inspect.Inspection) (inspect.Membership, time.Time) { return m.Urgent, m.Record.Scores().Urgent }},
	{"running", "deadline_at", func(m *inspect.Inspection) (inspect.Membership, time.Time) { return m.Running, m.Record.DeadlineAt }},
	{"stale_at", "stale_at", func(m *inspect.Inspection) (inspect.Membership, time.Time) { return m.Ages, m.Record.Scores().Ages }},
	{"late", "stale_at", func(m *inspect.Inspection) (inspect.Membership, time.Time) { return m.Late, m.Record.Scores().Late }},
	{"stale", "stale_at", func(m *inspect.Inspection) (inspect.Membership, time.Time) { return m.Stale, m.Record.Scores().Stale }},
}

func (s timeSet) key(k *store.Keys) string {
	return map[string]string{"due": k.Due, "urgent": k.Urgent, "running": k.Running, "stale_at": k.StaleAt, "late": k.Late, "stale": k.Stale}[s.name]
}

func (s timeSet) orphan() kind {
	return kind{strings.ReplaceAll(s.name, "_", "-") + "-orphan", Error, "a model for it", repairOrphan}
}

func (s timeSet) check(m *inspect.Inspection) []Finding {
	is, at := s.place(m)
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
	for _, set := range timeSets {
		key, check := set.key(&c.store.Keys), c.orphans(set.orphan())
		if c.wrongType[key] {
			continue
		}
		if err := inspect.Of(c.store).EachMember(ctx, key, func(uids []string) error { return check(ctx, uids) }); err != nil {
			return err
		}
	}
	return nil
}

// orphans returns a check of uids of which the walk came by a part: one without a model is an orphan.
// All parts of it are reported together, when the walk comes by the first of them.
func (c *checker) orphans(part kind) func(context.Context, []string) error {
	return func(ctx context.Context, uids []string) error {
		without, err := inspect.Of(c.store).WithoutModel(ctx, uids)
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
			for _, set := range timeSets {
				is, _ := set.place(m)
				note(set.orphan(), is.In, "a place in the "+set.name+" set")
			}
			if len(findings) > 0 && findings[0].Code != part.code {
				return nil
			}
			return findings
		})
	}
}
