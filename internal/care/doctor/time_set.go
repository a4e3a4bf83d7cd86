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
	name          string
	wrong, orphan kind
	// place is where a model stands, and at which time it should; zero: not at all.
	place func(*inspect.Inspection) (is inspect.Membership, at time.Time)
}

func newTimeSet(name, field string, place func(*inspect.Inspection) (inspect.Membership, time.Time)) timeSet {
	code := strings.ReplaceAll(name, "_", "-")
	return timeSet{
		name: name, place: place,
		wrong:  kind{code + "-wrong", Error, "in the " + name + " set at its " + field + " ", repairSets},
		orphan: kind{code + "-orphan", Error, "a model for it", repairOrphan},
	}
}

var timeSets = []timeSet{
	newTimeSet("due", "refresh_at", func(m *inspect.Inspection) (inspect.Membership, time.Time) { return m.Due, m.Record.DueAt() }),
	newTimeSet("urgent", "refresh_at", func(m *inspect.Inspection) (inspect.Membership, time.Time) { return m.Urgent, m.Record.UrgentAt() }),
	newTimeSet("running", "deadline_at", func(m *inspect.Inspection) (inspect.Membership, time.Time) { return m.Running, m.Record.DeadlineAt }),
	newTimeSet("stale_at", "stale_at", func(m *inspect.Inspection) (inspect.Membership, time.Time) { return m.Ages, m.Record.FreshnessAt() }),
	newTimeSet("late", "stale_at", func(m *inspect.Inspection) (inspect.Membership, time.Time) { return m.Late, m.Record.LateUntil() }),
	newTimeSet("stale", "stale_at", func(m *inspect.Inspection) (inspect.Membership, time.Time) { return m.Stale, m.Record.StaleSince() }),
}

func (s timeSet) key(k *store.Keys) string {
	return map[string]string{"due": k.Due, "urgent": k.Urgent, "running": k.Running, "stale_at": k.StaleAt, "late": k.Late, "stale": k.Stale}[s.name]
}

func (s timeSet) check(m *inspect.Inspection) []Finding {
	is, at := s.place(m)
	f := s.wrong.wanting(model.FormatTime(at)).at(m.Record.UID, "it is not there")
	switch {
	case is.Unknown || at.IsZero() && !is.In || !at.IsZero() && is.At(at):
		return nil
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
		key, check := set.key(&c.store.Keys), c.orphans(set.orphan)
		if c.wrongType[key] {
			continue
		}
		if err := inspect.Of(c.store).EachMember(ctx, key, func(uids []string) error { return check(ctx, uids) }); err != nil {
			return err
		}
	}
	return nil
}
