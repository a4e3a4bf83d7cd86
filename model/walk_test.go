package model

import (
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/policy"

	"pgregory.net/rapid"
)

// walker takes random steps: whatever happens in whatever order, the invariants of a story hold after each.
type walker struct {
	*story
	r   *rapid.T
	now time.Time
	// judge holds after each step that changed the model.
	judge func(before *Model)
}

func (w *walker) do(verb, extra string) {
	before := w.m
	w.story.do(w.now, verb, extra)
	if w.outcome == Applied {
		w.judge(&before)
	}
}

func randomWalk(t *testing.T, r *rapid.T, definition string) *walker {
	w := &walker{begin(noTB{t, r}, definition), r, monday, func(*Model) {}}
	w.do("put", "")
	return w
}

var definitions = []string{
	daily, lenient, banner, lastDay, halfHour, atSixAnd16 + oneThenGo, atSixAnd16 + `"policy":{}`, atSixAnd16 + `"policy":null`,
	`"rrule":"FREQ=DAILY;BYHOUR=2,3","timezone":"America/New_York","dtstart":"2026-03-07",` + sixRetries,
	`"policy":{"timeout":"1ms","retries":["3650d","1w2d3h4m5s6ms",0]}`,
}

var results = []struct{ kind, extra string }{
	{"success", ""}, {"failure", ""}, {"failure", ""}, {"failure", `"error_type":"A"`}, {"failure", `"error_type":"B"`}, {"failure", `"error_type":"C"`},
	{"failure", `"error_type":"D","retryable":true`}, {"failure", `"retryable":false`}, {"failure", `"retry_after":"3h"`},
	{"failure", `"retry_after":"1w2d3h4m5s7ms"`}, {"failure", `"retry_after":"2026-03-08T02:30:00Z"`},
	{"failure", `"reason":"\u0000\u2028","user_friendly_reason":"\u202e"`}, {"postponed", `"retry_after":"1h"`}, {"postponed", `"retry_after":86400`},
	{"postponed", `"retry_after":"100d"`}, {"interrupted", ""}, {"interrupted", ""},
}

var saves = []string{"", `"refresh":"now"`, `"payload":{"size":1}`, `"payload":{"size":2}`, `"payload":{"size":3},"refresh":"now"`}

// actions are what may happen to a model. A step that is impossible in a state does nothing there.
func (w *walker) actions() map[string]func(*rapid.T) {
	wake := func(*rapid.T) {
		if w.m.Due(w.now) {
			w.do("wake", "")
		}
	}
	end := func(verb string) func(*rapid.T) {
		return func(*rapid.T) {
			if w.expired(w.now) {
				w.do(verb, "")
			}
		}
	}
	idle := func(*rapid.T) { w.idle() }
	result := func(r *rapid.T) {
		result := rapid.SampledFrom(results).Draw(r, "result")
		w.result(result.kind, result.extra)
	}
	return map[string]func(*rapid.T){
		"wake": wake, "wake 2": wake, "wake 3": wake, // starts are what the rest needs
		"timeout": end("timeout"), "withdraw": end("withdraw"), "idle": idle, "idle 2": idle, "result": result, "result 2": result,
		"wait": func(r *rapid.T) { w.wait(rapid.Int64Range(0, 48*3600*1000).Draw(r, "ms")) },
		"say": func(r *rapid.T) {
			w.do(rapid.SampledFrom([]string{"started", "user_friendly_status"}).Draw(r, "word"), `"worker":"w","status":"s","progress":7`)
		},
		"put": func(r *rapid.T) { w.do("put", rapid.SampledFrom(saves).Draw(r, "save")) },
		"run": func(r *rapid.T) { w.do("run", rapid.SampledFrom([]string{"", `"force":true`}).Draw(r, "force")) },
		"disable": func(r *rapid.T) {
			w.do("disable", rapid.SampledFrom([]string{"", `"reason":"by hand"`}).Draw(r, "reason"))
		},
		"enable": func(*rapid.T) { w.do("enable", "") },
	}
}

func (w *walker) wait(ms int64) { w.now = w.now.Add(time.Duration(ms) * time.Millisecond) }

// idle passes the time until something is to be done, but no hundred years.
func (w *walker) idle() {
	if next := w.next(); next.After(w.now) && next.Before(monday.AddDate(100, 0, 0)) {
		w.now = next
	}
}

// result is delivered twice: what the first has changed, the second must not.
func (w *walker) result(kind, extra string) {
	running, attempt := w.m.Running(), w.m.AttemptUID
	w.do(kind, extra)
	if running && (w.outcome != Applied || w.m.LastAttemptUID != attempt || w.decision.Ended == nil) {
		w.r.Fatalf("the result of the running attempt was received as %q: %s", w.outcome, w)
	}
	after := w.m.State
	w.do(kind, extra)
	if w.outcome == Applied || w.m.State != after {
		w.r.Fatalf("the second %s was received as %q: %s", kind, w.outcome, w)
	}
}

func TestNoSequenceOfEventsBreaksAnInvariant(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := randomWalk(t, r, rapid.SampledFrom(definitions).Draw(r, "definition"))
		actions := w.actions()
		actions["redefine"] = func(r *rapid.T) {
			w.definition = rapid.SampledFrom(definitions).Draw(r, "definition")
			w.do("put", "")
		}
		r.Repeat(actions)
	})
}

func TestACycleOfLostResultsEndsAfterTheLastRetry(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := randomWalk(t, r, rapid.SampledFrom([]string{daily, banner, halfHour}).Draw(r, "definition"))
		for !w.m.Disabled {
			w.idle()
			w.do("start", "")
			w.idle()
			w.wait(rapid.Int64Range(0, 1000).Draw(r, "late"))
			w.do("timeout", "")
		}
		if want := w.m.Policy.MaxRetries() + 1; w.starts != want || w.decision.Notice != policy.NoticeDisabled {
			r.Fatalf("%d attempts, want %d: %s", w.starts, want, w)
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
