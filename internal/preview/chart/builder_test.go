package chart

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/schedule"
)

var (
	must   = check.Must
	equal  = check.Equal
	failIf = check.FailIf
)

// builder builds the events of a run, one after the other; its time goes on between them.
type builder struct {
	now    time.Time
	no     int
	events []Event
}

func instant(text string) time.Time {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return at
}

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	location := check.Got(schedule.Zone(name))(t)
	return location
}

func eventsFrom(start string) *builder { return &builder{now: instant(start)} }

func (s *builder) add(event Event) *builder {
	event.At = s.now
	s.events = append(s.events, event)
	return s
}

func (s *builder) start(timeout time.Duration) *builder {
	s.no++
	kind := Start
	if s.no > 1 {
		kind = Retry
	}
	return s.add(Event{Kind: kind, AttemptNo: s.no, DeadlineAt: s.now.Add(timeout), RefreshAt: s.now.Add(timeout), Why: "if lost: retry"})
}

func (s *builder) after(wait time.Duration) *builder {
	s.now = s.now.Add(wait)
	return s
}

func (s *builder) succeed(next time.Time) *builder {
	no := s.no
	s.no = 0
	return s.add(Event{Kind: Success, AttemptNo: no, RefreshAt: next, Why: "planned"})
}

func (s *builder) fail(kind Kind, wait time.Duration, why, reason string) *builder {
	s.add(Event{Kind: kind, AttemptNo: s.no, RefreshAt: s.now.Add(wait), Why: why, Reason: reason})
	return s.after(wait)
}

// gaveWay says that the latest failure would have been retried after a delay.
func (s *builder) gaveWay(delay time.Duration) *builder {
	last := &s.events[len(s.events)-1]
	last.RetryAt, last.Planned = last.At.Add(delay), true
	return s
}

func (s *builder) giveUp(kind Kind, why, reason string) *builder {
	s.add(Event{Kind: kind, AttemptNo: s.no, Why: why, Reason: reason})
	s.add(Event{Kind: Exhausted, AttemptNo: s.no, Why: why})
	return s.add(Event{Kind: Disabled, AttemptNo: s.no, Why: why})
}

// twiceADay are the planned refreshes at 6 and 16 o'clock.
func twiceADay(from time.Time, days int) []time.Time {
	var planned []time.Time
	for day := range days {
		for _, hour := range []int{6, 16} {
			planned = append(planned, time.Date(from.Year(), from.Month(), from.Day()+day, hour, 0, 0, 0, from.Location()))
		}
	}
	return planned
}

func charts(t testing.TB) map[string][]Chart {
	berlin := zone(t, "Europe/Berlin")
	monday := time.Date(2026, 3, 2, 0, 0, 0, 0, berlin)
	short, long := waitsForPlanned(berlin), givesUp(berlin)
	return map[string][]Chart{
		"success": {{Title: "start → success",
			Events: eventsFrom("2026-03-02T08:00:00Z").start(time.Hour).after(2 * time.Minute).succeed(instant("2026-03-02T10:00:00Z")).events}},
		"retry": {{Title: "start → retry → success", Events: eventsFrom("2026-03-02T08:00:00Z").
			start(time.Hour).after(5*time.Minute).fail(Failure, 0, "retry 1/6 at once", "HTTP 503").
			start(time.Hour).after(time.Minute).succeed(instant("2026-03-02T10:00:00Z")).events}},
		"retries": {{Title: "start → retry → retry → success", Events: eventsFrom("2026-03-02T08:00:00Z").
			start(time.Hour).after(5*time.Minute).fail(Failure, 0, "retry 1/6 at once", "HTTP 503").
			start(time.Hour).after(5*time.Minute).fail(Failure, 5*time.Minute, "retry 2/6 +5m", "HTTP 503").
			start(time.Hour).after(2 * time.Minute).succeed(instant("2026-03-02T10:00:00Z")).events}},
		"planned":  {short},
		"timeouts": {long},
		"against":  {short, long},
		"month": {{Title: "A month with an outage", Location: berlin, Start: monday, End: monday.AddDate(0, 0, 30),
			Events: month(monday), Planned: twiceADay(monday, 30)}},
		"empty": {{Title: "nothing", Start: monday, End: monday.AddDate(0, 0, 1)}},
		"hostile": {{Title: "</title><script>alert(1)</script>\n    click: a", Events: eventsFrom("2026-03-02T08:00:00Z").
			start(time.Hour).after(time.Minute).fail(Failure, time.Minute, "</text><script>alert(1)</script>", "--> %%{init}; #quot;\x1b[2J\u202e\nsection x").
			start(time.Hour).after(time.Minute).giveUp(Failure, "]]>", "\"' onload=\x00\uFFFF").events}},
	}
}

// waitsForPlanned: the failure at 14:41 would start a retry at 15:11, which may last beyond the planned refresh at 16:00.
func waitsForPlanned(berlin *time.Location) Chart {
	s := eventsFrom("2026-03-02T14:00:00+01:00")
	s.start(time.Hour).after(8*time.Minute).fail(Failure, time.Minute, "retry 1/6 +1m", "HTTP 503").
		start(time.Hour).after(12*time.Minute).fail(Failure, 5*time.Minute, "retry 2/6 +5m", "HTTP 503").
		start(time.Hour).after(15*time.Minute).fail(Failure, 79*time.Minute, "retry 3/6 +30m, planned first: overlaps", "connection reset by peer").
		gaveWay(30 * time.Minute).
		start(time.Hour).after(9 * time.Minute).succeed(instant("2026-03-03T06:00:00+01:00"))
	return Chart{Title: "A retry waits for the planned refresh", Location: berlin, Events: s.events,
		Planned: twiceADay(s.now.In(berlin), 2), Start: instant("2026-03-02T14:00:00+01:00"), End: instant("2026-03-03T14:00:00+01:00")}
}

func givesUp(berlin *time.Location) Chart {
	s := eventsFrom("2026-03-02T16:00:00+01:00")
	for k, wait := range []time.Duration{0, time.Minute, 5 * time.Minute} {
		why := "retry at once"
		if wait > 0 {
			why = "retry " + []string{"1/3", "2/3", "3/3"}[k] + " +" + document.FormatDuration(wait)
		}
		s.start(time.Hour).after(time.Hour).fail(Timeout, wait, why, "timeout")
	}
	s.start(time.Hour).after(time.Hour).giveUp(Timeout, "final: exhausted after 4", "timeout")
	return Chart{Title: "Timeouts until it is disabled", Location: berlin, Events: s.events,
		Planned: twiceADay(instant("2026-03-02T00:00:00+01:00").In(berlin), 2), Start: instant("2026-03-02T16:00:00+01:00"), End: instant("2026-03-03T16:00:00+01:00")}
}

// month runs at 6 and 16 o'clock; every fifth run fails once, and an outage of four days ends in giving up.
func month(monday time.Time) []Event {
	random := rand.New(rand.NewPCG(1, 2))
	s := &builder{}
	planned := twiceADay(monday, 31)
	for i := range 40 {
		s.now = planned[i]
		s.start(time.Hour).after(time.Duration(2+random.IntN(20)) * time.Minute)
		if i%5 == 4 {
			s.fail(Failure, 5*time.Minute, "retry 1/6 +5m", "HTTP 503").start(time.Hour).after(11 * time.Minute)
		}
		s.succeed(planned[i+1])
	}
	for i := range 8 {
		s.now = planned[40+i]
		for k, wait := range []time.Duration{0, time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute} {
			why := "retry " + []string{"1/6 at once", "2/6 +1m", "3/6 +5m", "4/6 +15m", "5/6 +30m"}[k]
			s.start(time.Hour).after(time.Duration(1+random.IntN(9))*time.Minute).fail(Failure, wait, why, "HTTP 500")
		}
		s.start(time.Hour).after(time.Hour)
		if i < 7 {
			s.fail(Timeout, planned[41+i].Sub(s.now), "exhausted after 6, planned", "timeout")
			s.no = 0
		}
	}
	return s.giveUp(Timeout, "final: no success for 4d", "timeout").events
}
