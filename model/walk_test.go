package model

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/refreshd/refreshd/model/policy"
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

// actions are the possible events of a model. A step that is impossible in a state does nothing there.
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

// drawPolicy writes a policy with any of the fields.
func drawPolicy(r *rapid.T) string {
	var fields []string
	may := func(name string, values ...string) {
		if value := rapid.SampledFrom(append(values, "", "")).Draw(r, name); value != "" {
			fields = append(fields, fmt.Sprintf("%q:%s", name, value))
		}
	}
	may("rrule", `"FREQ=DAILY;BYHOUR=2,14"`, `"FREQ=HOURLY;INTERVAL=7"`, `"FREQ=WEEKLY;BYDAY=SU;BYHOUR=2;BYMINUTE=30"`)
	may("timezone", `"Europe/Berlin"`, `"America/New_York"`)
	may("timeout", `"none"`, `"1ms"`, `"1m"`, `"1h"`, `"25h"`)
	may("queue_timeout", `"1m"`, `"30m"`)
	may("retries", drawRetries(r))
	may("jitter", `0`, `0.2`, `1`)
	may("alignment", `"align_planned"`, `"until_success"`, `"planned_only"`, `"whichever_first"`, `"between_planned"`)
	may("on_exhausted", `"give_up"`, `"next_planned"`)
	may("give_up_after", `"30m"`, `"1d"`, `"1w"`, `"1ms"`)
	may(rapid.SampledFrom([]string{"retry_on", "never_retry"}).Draw(r, "list"), `[]`, `["A","B"]`, `"permanent"`, `["timeout"]`)
	may("delays_by_error", `{"A":"1h","B":"never","C":"next","D":0}`)
	may("retry_window", `"FREQ=DAILY;BYHOUR=9,10,11"`, `"FREQ=WEEKLY;BYDAY=SA,SU"`, `"FREQ=DAILY;BYHOUR=2;BYMINUTE=30"`)
	may("misfire", `"run_once"`, `"skip"`, `"run_if_younger_than 1h"`, `{"run_if_younger_than":0}`)
	may("spread", `"10m"`, `"3h"`, `"3d"`)
	may("notify", `[]`, `["disabled"]`, `["disabled","recovered"]`)
	may("disabled_reason", `"thumbnail creation failed"`)
	return "{" + strings.Join(fields, ",") + "}"
}

func drawRetries(r *rapid.T) string {
	delays := func() string {
		list := rapid.SliceOfN(rapid.SampledFrom([]string{`0`, `"1m"`, `"1h"`, `"25h"`, `"next"`, `"3650d"`}), 0, 5).Draw(r, "delays")
		return "[" + strings.Join(list, ",") + "]"
	}
	strategy := func() string {
		name := rapid.SampledFrom([]string{"fixed", "linear", "exponential", "fibonacci"}).Draw(r, "strategy")
		more := rapid.SampledFrom([]string{``, `,"count":3`, `,"count":0`, `,"cap":"1h"`, `,"base":"1s","cap":"2s","count":4`, `,"base":"3650d"`}).Draw(r, "more")
		return fmt.Sprintf(`{"strategy":%q%s}`, name, more)
	}
	other := rapid.SampledFrom([]string{
		`"5m"`, `"5s 10m"`, `"3 5s 10m"`, `{"by_age":["1h: 5m","1d: 1h"]}`, `{"by_age":["1h: next"]}`,
		`{"expr":"k < 4 ? '10m' : false"}`, `{"expr":"[0, 60][k]"}`, `{"expr":"k % 0"}`, `{"expr":"'next'"}`, `{"expr":"error_type == 'A' ? 0 : 2 ** k"}`, `{"expr":"queue_depth / k"}`,
	})
	return rapid.OneOf(rapid.Custom(func(*rapid.T) string { return delays() }), rapid.Custom(func(*rapid.T) string { return strategy() }), other).Draw(r, "retries")
}

var schedules = []string{
	``, `"rrule":"FREQ=DAILY;BYHOUR=6,16","dtstart":"2026-01-01",`, `"rrule":"FREQ=MINUTELY;INTERVAL=30","dtstart":"2026-01-05",`,
	`"rrule":"FREQ=WEEKLY;BYDAY=MO;BYHOUR=6","timezone":"Europe/Berlin","dtstart":"2026-01-01",`, `"rrule":"FREQ=DAILY;UNTIL=20260109T000000Z","dtstart":"2026-01-01",`,
}

func walk(t *testing.T, r *rapid.T) *walker {
	policy := drawPolicy(r)
	schedule := rapid.SampledFrom(schedules).Draw(r, "schedule")
	w := randomWalk(t, r, schedule+`"policy":`+policy)
	w.judge = w.keepsPromises
	return w
}

func (w *walker) keepsPromises(before *Model) {
	m, now := &w.m, w.now
	_, planned := m.planned(now)
	last := m.giveUpAt(&m.State)
	for broken, is := range map[string]bool{
		"an enabled model is stuck":          !m.Disabled && !m.Running() && !m.Waiting() && (planned || before.Waiting()),
		"the next start lies in the past":    m.Waiting() && m.RefreshAt.Before(now) && !m.RefreshAt.Equal(before.RefreshAt) && !m.RefreshAt.Equal(last),
		"waits behind its window":            m.Waiting() && !m.FailingSince.IsZero() && !last.IsZero() && w.attempted() && m.RefreshAt.After(later(now, last)),
		"more successful retries than there": m.SuccessfulRetries > m.TotalRetries || m.SuccessfulRetries > m.RetriedCycles,
		"more retried cycles than retries":   m.RetriedCycles > m.TotalRetries,
	} {
		if is {
			w.r.Fatalf("%s after %s: %s: %s", clockText(now), w.decision.Event, broken, w)
		}
	}
	joins := w.failed() || w.decision.Event == EventSkipped
	if joins && m.Waiting() && !before.Again && w.decision.PolicyError == "" {
		w.aligned()
	}
}

func (w *walker) failed() bool {
	return w.decision.Event == EventFailure || w.decision.Event == EventTimeout
}

// attempted reports whether what happened leaves a failing model as it was: failing.
func (w *walker) attempted() bool {
	return w.failed() || w.decision.Event == EventPostponed || w.decision.Event == EventInterrupted || w.decision.Event == EventSkipped
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// aligned is what the alignments promise after a failure: no planned refresh is left out for a retry, also where a worker has moved it, and no
// retry runs over one. With until_success, and when planned has taken the place of a running attempt (no timeout), there is no such promise.
func (w *walker) aligned() {
	m := &w.m
	planned, found := m.planned(w.now)
	planned = later(planned, m.NotBefore)
	if !found || m.Policy.Alignment == policy.UntilSuccess || m.RefreshAt.Equal(w.now) && m.Policy.Timeout == 0 {
		return
	}
	givesUp := m.RefreshAt.Equal(m.giveUpAt(&m.State))
	early := m.RefreshAt.Before(planned) && !givesUp
	overlaps := early && m.RefreshAt.Add(m.Policy.Timeout).After(planned)
	switch {
	case m.RefreshAt.After(planned):
		w.r.Fatalf("%s: the planned refresh at %s is left out: %s", clockText(w.now), clockText(planned), w)
	case early && m.Policy.Alignment == policy.PlannedOnly:
		w.r.Fatalf("%s: a retry before the planned refresh at %s: %s", clockText(w.now), clockText(planned), w)
	case overlaps && m.Policy.Alignment != policy.WhicheverFirst:
		w.r.Fatalf("%s: a retry over the planned refresh at %s: %s", clockText(w.now), clockText(planned), w)
	}
}

func TestNoPolicyAndNoSequenceOfEventsBreaksAPromise(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		r.Repeat(walk(t, r).actions())
	})
}

func TestTheSameInputGivesTheSameDecision(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := walk(t, r)
		w.idle()
		if !w.m.Due(w.now) {
			return
		}
		w.do("wake", "")
		if !w.m.Running() {
			return
		}
		message := Message{Type: MessageFailure, AttemptUID: w.m.AttemptUID, Failure: policy.Failure{ErrorType: rapid.SampledFrom([]string{"", "A", "C"}).Draw(r, "type")}}
		end := w.m.DeadlineAt
		for name, decide := range map[string]func(Model) any{
			"failure":  func(m Model) any { d, o := m.Handle(message, end); return []any{d, o} },
			"timeout":  func(m Model) any { return m.Expire(end) },
			"withdraw": func(m Model) any { return m.Withdraw(end) },
			"start":    func(m Model) any { return m.Start(end, "again") },
		} {
			before := w.m
			if first, second := decide(w.m), decide(w.m); !reflect.DeepEqual(first, second) || before.State != w.m.State {
				r.Fatalf("%s: %+v, then %+v", name, first, second)
			}
		}
	})
}

// Whatever the policy: when nobody ever answers, a model comes to an end, or goes on no faster than its policy says.
func TestACycleOfLostResultsHasAtMostOneMoreRunThanRetries(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := walk(t, r)
		runs, count := 0, w.m.Policy.MaxRetries()
		for range 40 {
			w.idle()
			if !w.m.Due(w.now) {
				return
			}
			if w.do("wake", ""); !w.m.Running() {
				continue
			}
			if w.m.AttemptNo == 1 {
				runs = 0
			}
			if runs++; w.m.AttemptNo > 1 && runs != w.m.AttemptNo && w.m.Deferrals == 0 && w.m.Policy.QueueTimeout == 0 || count != policy.Unlimited && w.m.AttemptNo > count+1 {
				r.Fatalf("run %d of at most %d: %s", runs, count+1, w)
			}
			if w.idle(); !w.expired(w.now) {
				return
			}
			w.do("timeout", "")
		}
	})
}

// What is expected at the start is what a timeout at the deadline decides.
func TestAnExpectedTimeoutComesAsExpected(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := walk(t, r)
		for range 14 {
			if w.idle(); !w.m.Due(w.now) {
				return
			}
			if w.do("wake", ""); !w.m.Running() {
				continue
			}
			expected := w.m.RefreshAt
			if w.idle(); !w.expired(w.now) {
				return
			}
			w.do("timeout", "")
			if !w.m.RefreshAt.Equal(expected) {
				r.Fatalf("expected %s, found %s", clockText(expected), w)
			}
		}
	})
}
