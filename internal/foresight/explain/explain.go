// Package explain tells of one model: what its state means, why it refreshes when it does, how its last attempts ended, and what follows if the
// next one succeeds, fails or is lost. It reads through package store, and renders facts to lines of text for the command line and the
// dashboard alike. Every line may hold texts from outside: whoever shows them makes them harmless there.
package explain

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
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
	place     store.QueuePosition // of a queued attempt
	alike     store.FailureGroup  // by which the model is failing
	admission store.Admission
}

// Read reads all that is told of a model that must be stored.
func Read(ctx context.Context, store *store.Store, uid string) (*Explanation, error) {
	found, attempts, err := ReadPast(ctx, store, uid)
	if err != nil {
		return nil, err
	}
	if err := found.ReadLiveness(ctx, store); err != nil {
		return nil, err
	}
	record := found.Record
	s := &Explanation{Shown: found, Attempts: attempts, m: &record.Model, zone: ZoneOf(&record.Model)}
	if s.admission, err = store.Report().Admission(ctx, s.m, s.Now); err != nil {
		return nil, err
	}
	s.Forecast, s.Gate = s.admission.Gates.Forecast(s.m, s.Now)
	if found.Status == model.StatusQueued || found.Status == model.StatusDue {
		if s.place, err = store.Report().QueuePosition(ctx, record); err != nil {
			return nil, err
		}
	}
	if id := record.FingerprintID; id != "" {
		if s.alike, err = store.Report().FailingAlike(ctx, id); err != nil {
			return nil, err
		}
	}
	s.m.Fault = cmp.Or(s.m.Fault, s.Forecast.RuleError)
	return s, nil
}

// In tells times on the clock of another zone.
func (s *Explanation) In(zone *time.Location) { s.zone = zone }

// clock is a time of day, with its day if that is not today.
func (s *Explanation) clock(at time.Time) string {
	at = at.In(s.zone)
	layout := "15:04"
	if at.Second() > 0 {
		layout = time.TimeOnly
	}
	switch now := s.Now.In(s.zone); {
	case at.Format(time.DateOnly) == now.Format(time.DateOnly):
	case at.Year() == now.Year():
		layout = "Mon 2 Jan " + layout
	default:
		layout = "2 Jan 2006 " + layout
	}
	return at.Format(layout)
}

func (s *Explanation) when(at time.Time) string {
	return s.clock(at) + " (" + words.Distance(at, s.Now) + ")"
}

// Next is what follows, in lines.
func (s *Explanation) Next() []string {
	f := &s.Forecast
	begins := "next: the running attempt ends"
	switch {
	case s.Gate != "" && f.GiveUp.Possible():
		return []string{"next: when " + string(s.Gate) + " lets it go, " + s.branch(f.GiveUp)}
	case s.Gate != "":
		begins = "next: an attempt starts when " + string(s.Gate) + " lets it go, nobody knows when; as if that were as soon as it can be:"
	case f.GiveUp.Possible():
		return []string{"next: at " + s.when(f.GiveUp.At) + " " + s.branch(f.GiveUp)}
	case !f.Success.Possible():
		return []string{"next: nothing, until it is saved, enabled or run by hand"}
	case !f.StartAt.IsZero():
		begins = "next: an attempt starts at " + s.when(f.StartAt) + "; the lines below assume that it is answered at once"
	}
	note := ""
	if f.Jitter > 0 {
		note = fmt.Sprintf("; jitter may move a delay by %g%%", 100*f.Jitter)
	}
	return []string{
		begins,
		"  if it succeeds: " + s.branch(f.Success),
		"  if it fails: " + s.branch(f.Failure) + note,
		"  if it is lost, at " + s.when(f.TimedOut.At) + ": " + s.branch(f.TimedOut) + note,
	}
}

func (s *Explanation) branch(b model.Branch) string {
	switch {
	case b.Disabled:
		return fmt.Sprintf("disabled until the next update, %s; the owner reads %q", b.Why, b.Reason)
	case b.RefreshAt.IsZero():
		return b.Why
	default:
		return "refresh at " + s.when(b.RefreshAt) + ", " + b.Why
	}
}

// ZoneOf is the zone of the schedule in force, UTC if it names none.
func ZoneOf(m *model.Model) *time.Location {
	zone, err := time.LoadLocation(m.Zone())
	if err != nil { // a model with a fault; its schedule is not in force either
		return time.UTC
	}
	return zone
}
