// Package explain tells of one model: what its state means, why it refreshes when it does, how its last attempts ended, and what follows if the
// next one succeeds, fails or is lost. It reads through package store, and renders facts to lines of text for the command line and the
// dashboard alike. Every line may hold texts from outside: whoever shows them makes them harmless there.
package explain

import (
	"cmp"
	"context"
	"time"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/hint"
	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/schedule"
	"github.com/refreshd/refreshd/model/words"
)

// Explanation is a model explained, at one instant and on the clock of its schedule.
type Explanation struct {
	Shown

	Attempts []model.Attempt // that ended last, newest first
	Forecast model.Forecast
	// Gate is what the next start waits for, if nobody knows when that opens; "": none.
	Gate model.Blocker

	m         *model.Model
	zone      *time.Location
	ui        hint.UI
	place     report.QueuePosition // of a queued attempt
	alike     report.FailureGroup  // by which the model is failing
	admission flow.Admission
}

// Read reads all that is told of a model that must be stored.
func Read(ctx context.Context, part *store.Store, uid string) (*Explanation, error) {
	found, attempts, err := ReadPast(ctx, part, uid)
	if err != nil {
		return nil, err
	}
	if err := found.ReadLiveness(ctx, part); err != nil {
		return nil, err
	}
	record := found.Record
	s := &Explanation{Shown: found, Attempts: attempts, m: &record.Model, zone: ZoneOf(&record.Model)}
	if s.admission, err = flow.Inspect(part).Admission(ctx, s.m, s.Now); err != nil {
		return nil, err
	}
	s.Forecast, s.Gate = s.admission.Blockers.Forecast(s.m, &s.admission.Rooms, s.Now)
	if found.Status == model.StatusQueued || found.Status == model.StatusDue {
		if s.place, err = report.Of(part).QueuePosition(ctx, record); err != nil {
			return nil, err
		}
	}
	if id := record.FingerprintID; id != "" {
		if s.alike, err = report.Of(part).FailingAlike(ctx, id); err != nil {
			return nil, err
		}
	}
	s.m.Fault = cmp.Or(s.m.Fault, s.Forecast.RuleError)
	return s, nil
}

// In tells times on the clock of another zone, and hints in the words of another face.
func (s *Explanation) In(zone *time.Location, ui hint.UI) { s.zone, s.ui = zone, ui }

func (s *Explanation) clock(at time.Time) string { return words.Clock(at, s.Now, s.zone) }

// ZoneOf is the zone of the schedule in force, UTC if it names none.
func ZoneOf(m *model.Model) *time.Location {
	zone, err := schedule.Zone(m.Zone())
	if err != nil { // a model with a fault; its schedule is not in force either
		return time.UTC
	}
	return zone
}
