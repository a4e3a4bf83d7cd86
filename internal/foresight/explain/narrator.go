package explain

import (
	"fmt"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/words"
)

// narrator tells of one model at one instant, on the clock of its schedule.
type narrator struct {
	Shown
	m     *model.Model
	zone  *time.Location
	place store.QueuePosition // of a queued attempt
	alike store.FailureGroup  // by which the model is failing

	admission store.Admission
	gate      model.Blocker // that the next start waits for, of which nobody knows when it opens; empty: none
}

// clock is a time of day, with its day if that is not today.
func (s *narrator) clock(at time.Time) string {
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

func (s *narrator) when(at time.Time) string {
	return s.clock(at) + " (" + words.Distance(at, s.Now) + ")"
}

func (s *narrator) forecast(f model.Forecast) []string {
	begins := "next: the running attempt ends"
	switch {
	case s.gate != "" && f.GiveUp.Possible():
		return []string{"next: when " + string(s.gate) + " lets it go, " + s.branch(f.GiveUp)}
	case s.gate != "":
		begins = "next: an attempt starts when " + string(s.gate) + " lets it go, nobody knows when; as if that were as soon as it can be:"
	case f.GiveUp.Possible():
		return []string{"next: at " + s.when(f.GiveUp.At) + " " + s.branch(f.GiveUp)}
	case !f.Success.Possible():
		return []string{"next: nothing, until it is saved, enabled or run by hand"}
	case !f.StartAt.IsZero():
		begins = "next: an attempt starts at " + s.when(f.StartAt) + "; its answer is taken to come at once"
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

func (s *narrator) branch(b model.Branch) string {
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
