package model

import (
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/policy"

	"pgregory.net/rapid"
)

// machine walks at random: whatever happens in whatever order, the invariants hold after each step.
type machine struct {
	*story
	now time.Time
}

func (m *machine) do(verb, extra string) { m.story.do(m.now, verb, extra) }

var definitions = []string{
	daily, lenient, banner, lastDay, halfHour, atSixAnd16 + oneThenGo, atSixAnd16 + `"policy":{}`, atSixAnd16 + `"policy":null`,
	`"rrule":"FREQ=DAILY;BYHOUR=2,3","timezone":"America/New_York","dtstart":"2026-03-07",` + sixRetries,
	`"policy":{"timeout":"1ms","retries":["3650d","1w2d3h4m5s6ms",0]}`,
}

var results = []struct{ kind, extra string }{
	{"success", ""}, {"failure", ""}, {"failure", `"retryable":false`}, {"failure", `"retry_after":"1w2d3h4m5s7ms"`}, {"failure", `"retry_after":"2026-03-08T02:30:00Z"`},
	{"failure", `"reason":"\u0000\u2028","user_friendly_reason":"\u202e"`}, {"postponed", `"retry_after":86400`}, {"interrupted", ""}, {"interrupted", ""},
}

// actions are what may happen to a model. A step that is impossible in a state does nothing there.
func (m *machine) actions(t *rapid.T) map[string]func(*rapid.T) {
	tick := func(verb string, possible func() bool) func(*rapid.T) {
		return func(*rapid.T) {
			if possible() {
				m.do(verb, "")
			}
		}
	}
	due := func() bool { return m.m.Due(m.now) }
	expired := func() bool { return m.m.Running() && !m.m.DeadlineAt.After(m.now) }
	return map[string]func(*rapid.T){
		"start": tick("start", due), "start 2": tick("start", due), "start 3": tick("start", due), // starts are what the rest needs
		"timeout": tick("timeout", expired), "withdraw": tick("withdraw", expired),
		"wait":   func(t *rapid.T) { m.wait(rapid.IntRange(0, 48*3600*1000).Draw(t, "ms")) },
		"idle":   func(*rapid.T) { m.idle() },
		"result": func(t *rapid.T) { r := rapid.SampledFrom(results).Draw(t, "result"); m.result(t, r.kind, r.extra) },
		"say": func(t *rapid.T) {
			m.do(rapid.SampledFrom([]string{"started", "user_friendly_status"}).Draw(t, "word"), `"worker":"w","status":"s","progress":7`)
		},
		"put":      func(t *rapid.T) { m.do("put", rapid.SampledFrom(saves).Draw(t, "save")) },
		"redefine": func(t *rapid.T) { m.definition = rapid.SampledFrom(definitions).Draw(t, "definition"); m.do("put", "") },
		"run":      func(t *rapid.T) { m.do("run", rapid.SampledFrom([]string{"", `"force":true`}).Draw(t, "force")) },
		"disable":  func(*rapid.T) { m.do("disable", `"reason":"by hand"`) },
		"enable":   func(*rapid.T) { m.do("enable", "") },
	}
}

var saves = []string{"", `"refresh":"now"`, `"payload":{"size":1}`, `"payload":{"size":2}`, `"payload":{"size":3},"refresh":"now"`}

func (m *machine) wait(ms int) { m.now = m.now.Add(time.Duration(ms) * time.Millisecond) }

// idle passes the time until something is to be done.
func (m *machine) idle() {
	next := m.m.RefreshAt
	if m.m.Running() {
		next = m.m.DeadlineAt
	}
	if next.After(m.now) {
		m.now = next
	}
}

// result is delivered twice: what the first has changed, the second must not.
func (m *machine) result(t *rapid.T, kind, extra string) {
	running, attempt := m.m.Running(), m.m.AttemptUID
	m.do(kind, extra)
	if running && (m.outcome != Applied || m.m.LastAttemptUID != attempt || m.decision.Ended == nil) {
		t.Fatalf("the result of the running attempt was received as %q: %s", m.outcome, m)
	}
	after := m.m.State
	m.do(kind, extra)
	if m.outcome == Applied || m.m.State != after {
		t.Fatalf("the second %s was received as %q: %s", kind, m.outcome, m)
	}
}

func TestNoSequenceOfEventsBreaksAnInvariant(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		definition := rapid.SampledFrom(definitions).Draw(r, "definition")
		m := &machine{begin(noTB{t, r}, definition), monday}
		m.do("put", "")
		r.Repeat(m.actions(r))
	})
}

// Bug 22: when every response was lost, attempts went on for ever.
func TestACycleOfLostResultsEndsAfterTheLastRetry(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		m := &machine{begin(noTB{t, r}, rapid.SampledFrom([]string{daily, banner, halfHour}).Draw(r, "definition")), monday}
		m.do("put", "")
		for !m.m.Disabled {
			m.idle()
			m.do("start", "")
			m.idle()
			m.wait(rapid.IntRange(0, 1000).Draw(r, "late"))
			m.do("timeout", "")
		}
		if want := m.m.Policy.MaxRetries() + 1; m.starts != want || m.decision.Notice != policy.NoticeDisabled {
			t.Fatalf("%d attempts, want %d: %s", m.starts, want, m)
		}
	})
}

// noTB lends a rapid test the rest of testing.TB; what fails, fails in rapid.
type noTB struct {
	testing.TB
	r *rapid.T
}

func (n noTB) Helper()                           {}
func (n noTB) Errorf(format string, args ...any) { n.r.Errorf(format, args...) }
func (n noTB) Fatalf(format string, args ...any) { n.r.Fatalf(format, args...) }
func (n noTB) Fatal(args ...any)                 { n.r.Fatal(args...) }
