package logbook_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/logbook"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
)

var failIf = check.FailIf

func TestMain(m *testing.M) { testkit.Main(m) }

type story struct {
	*fixture.Queue
	t          *testing.T
	text       bytes.Buffer
	dispatcher *dispatcher.Dispatcher
	poller     *poller.Poller
}

func tell(t *testing.T, server *testkit.Server, level zerolog.Level) *story {
	t.Helper()
	s := &story{Queue: fixture.New(t, server), t: t}
	log, attempts := zerolog.New(&s.text).Level(level), 0
	newUID := func() string { attempts++; return fmt.Sprint("attempt-", attempts) }
	var errs [2]error
	s.dispatcher, errs[0] = dispatcher.New(dispatcher.RoomsOf(s.Store), dispatcher.Config{Log: &log, NewUID: newUID})
	s.poller, errs[1] = poller.New(poller.RoomsOf(s.Store), poller.Config{Log: &log})
	check.Must(t, errors.Join(errs[:]...))
	return s
}

// dispatch lets the dispatcher work at a time after the beginning, and a worker take what it starts.
func (s *story) dispatch(after time.Duration) {
	s.t.Helper()
	s.Clock.Set(fixture.Start.Add(after))
	_, err := s.dispatcher.RunOnce(s.t.Context())
	check.Must(s.t, err)
	for more := true; more; {
		_, more = s.Take()
	}
}

// apply lets the poller work at a time after the beginning.
func (s *story) apply(after time.Duration) {
	s.t.Helper()
	s.Clock.Set(fixture.Start.Add(after))
	_, err := s.poller.RunOnce(s.t.Context())
	check.Must(s.t, err)
}

func (s *story) answer(after time.Duration, kind, uid string, fields ...string) {
	s.t.Helper()
	s.Say(fixture.Result(kind, uid, s.Attempt(uid), fields...))
	s.apply(after)
}

func (s *story) lines() (lines []map[string]any) {
	s.t.Helper()
	for line := range strings.Lines(s.text.String()) {
		var object map[string]any
		check.Must(s.t, json.Unmarshal([]byte(line), &object))
		lines = append(lines, object)
	}
	return lines
}

const (
	disabledMessage = "final failure, disabled until the next update"
	lostMessage     = "attempt lost, no answer before its deadline"
	rejectedMessage = "poller: message rejected, kept in the list rejected"
	thirty, minute  = 30 * time.Second, time.Minute
	cannot          = "Cannot refresh after 2 attempts: HTTP 503"
)

// twoFailures saves a model, and lets its first attempt be lost and its second one fail for good; a run by hand then succeeds.
func (s *story) twoFailures() {
	s.Command(`{"type":"put","uid":"tbl_1","policy":{"timeout":"1m","retries":["30s"],"on_exhausted":"give_up"}}`)
	s.apply(0)
	s.dispatch(0)
	s.dispatch(minute)          // lost
	s.dispatch(minute + thirty) // the retry
	s.answer(minute+40*time.Second, "started", "tbl_1", `"worker":"w1"`)
	s.answer(minute+45*time.Second, "failure", "tbl_1", `"reason":"HTTP 503"`, `"error_type":"Unavailable"`)
	s.Command(`{"type":"run","uid":"tbl_1"}`)
	s.apply(2 * minute)
	s.dispatch(2 * minute)
	s.answer(2*minute+time.Second, "success", "tbl_1", `"changed":true`)
}

func TestEachTransitionLeavesALineWithTheWholeAttempt(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		s := tell(t, server, zerolog.DebugLevel)
		s.twoFailures()
		s.Command(`{"type":"run","uid":"tbl_1"}`)
		s.apply(3 * minute)
		s.Clock.Set(fixture.Start.Add(3 * minute))
		for _, after := range []time.Duration{3 * minute, 4 * minute} { // nobody takes it
			s.Clock.Set(fixture.Start.Add(after))
			_, err := s.dispatcher.RunOnce(t.Context())
			check.Must(t, err)
		}
		type line = map[string]any
		first := line{"level": "debug", "message": "dispatcher: transition", "uid": "tbl_1", "event": "start",
			"attempt_uid": "attempt-1", "attempt_no": 1.0, "started_at": "2026-11-21T07:00:00.000Z", "deadline_at": "2026-11-21T07:01:00.000Z",
			"refresh_at": "2026-11-21T07:01:30.000Z", "refresh_why": "on timeout: retry 1 of 1 after 30s"}
		lost := line{"level": "warn", "message": "dispatcher: " + lostMessage, "uid": "tbl_1", "event": "timeout", "like_this": 1.0,
			"attempt_uid": "attempt-1", "attempt_no": 1.0, "started_at": "2026-11-21T07:00:00.000Z", "ended_at": "2026-11-21T07:01:00.000Z",
			"deadline_at": "2026-11-21T07:01:00.000Z", "reason": "timeout", "error_type": "timeout", "delay_ms": 30000.0, "jitter_ms": 0.0,
			"overlap": "none planned", "retry_at": "2026-11-21T07:01:30.000Z", "refresh_at": "2026-11-21T07:01:30.000Z",
			"refresh_why": "retry 1 of 1 after 30s", "refresh_for": "retry"}
		begun := line{"level": "debug", "message": "poller: transition", "uid": "tbl_1", "event": "started",
			"attempt_uid": "attempt-2", "attempt_no": 2.0, "started_at": "2026-11-21T07:01:30.000Z", "deadline_at": "2026-11-21T07:02:40.000Z",
			"worker": "w1", "refresh_why": "on timeout: disabled after 2 failures, no retry left", "refresh_for": "retry"}
		final := line{"level": "warn", "message": "poller: " + disabledMessage, "uid": "tbl_1", "event": "failure", "like_this": 1.0,
			"attempt_uid": "attempt-2", "attempt_no": 2.0, "started_at": "2026-11-21T07:01:30.000Z", "ended_at": "2026-11-21T07:01:45.000Z",
			"deadline_at": "2026-11-21T07:02:40.000Z", "worker": "w1", "reason": "HTTP 503", "error_type": "Unavailable",
			"retries_exhausted": true, "final": true, "disabled": true, "refresh_why": "disabled after 2 failures, no retry left",
			"refresh_disabled_user_friendly_reason": cannot, "refresh_disabled_by": "policy"}
		recovered := line{"level": "info", "message": "poller: recovered", "uid": "tbl_1", "event": "success", "like_this": 1.0,
			"attempt_uid": "attempt-3", "attempt_no": 1.0, "started_at": "2026-11-21T07:02:00.000Z", "ended_at": "2026-11-21T07:02:01.000Z",
			"deadline_at": "2026-11-21T07:03:00.000Z", "changed": true, "refresh_why": "finished: one-shot"}
		withdrawn := line{"level": "debug", "message": "dispatcher: transition", "uid": "tbl_1", "event": "withdrawn",
			"attempt_uid": "attempt-4", "attempt_no": 1.0, "started_at": "2026-11-21T07:03:00.000Z", "ended_at": "2026-11-21T07:04:00.000Z",
			"deadline_at": "2026-11-21T07:04:00.000Z", "refresh_at": "2026-11-21T07:04:00.000Z", "refresh_why": "withdrawn: no worker took it", "refresh_for": "run"}
		lines := s.lines()
		var told []string
		for _, line := range lines {
			told = append(told, fmt.Sprint(line["event"]))
		}
		entries, _, err := report.Of(s.Store).Tail(t.Context(), report.TailStart)
		check.Must(t, err)
		var journal []string
		for _, entry := range entries {
			journal = append(journal, string(entry.Event))
		}
		check.Equal(t, journal, told) // a line for each entry
		for i, want := range map[int]line{1: first, 2: lost, 4: begun, 5: final, 8: recovered, 11: withdrawn} {
			diff := cmp.Diff(want, lines[i])
			failIf(t, diff != "", "line %d: %s", i, diff)
		}
	})
}

func TestWithoutDebugOnlyWhatSomebodyShouldLookAtIsTold(t *testing.T) {
	s := tell(t, testkit.Miniredis(t), zerolog.InfoLevel)
	s.twoFailures()
	var told []string
	for _, line := range s.lines() {
		told = append(told, fmt.Sprint(line["level"], " ", line["message"]))
	}
	want := []string{"warn dispatcher: " + lostMessage, "warn poller: " + disabledMessage, "info poller: recovered"}
	check.Equal(t, want, told)
}

func TestARejectedMessageIsToldWithItsModelAndItsReason(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		s := tell(t, server, zerolog.InfoLevel)
		s.Say(`{"type":"succes","big_table_uid":"tbl_1","refresh_attempt_uid":"a1"}`, "garbage\x1b[2J\n{",
			`{"type":"success","big_table_uid":"evil\u001b[2J\n","refresh_attempt_uid":"a2"}`)
		s.Command(`{"type":"run","uid":"nobody"}`)
		s.apply(0)
		type line = map[string]any
		want := []line{
			{"level": "warn", "message": rejectedMessage + "; its attempt goes on", "uid": "tbl_1", "attempt_uid": "a1", "source": "output",
				"counter": "unknown_type", "like_this": 1.0,
				"reason": `type: expected success, failure, user_friendly_status, started, postponed, interrupted, ready, found "succes"`},
			{"level": "warn", "message": rejectedMessage + "; its attempt goes on", "source": "output", "counter": "malformed", "like_this": 1.0,
				"reason": `expected a JSON object, found "garbage\x1b[2J\n{"`},
			{"level": "warn", "message": rejectedMessage + "; its attempt goes on", "uid": "evil [2J", "attempt_uid": "a2", "source": "output",
				"counter": "unknown_model", "like_this": 1.0, "reason": `big_table_uid: expected a stored model, found "evil\x1b[2J\n"`},
			{"level": "warn", "message": rejectedMessage, "uid": "nobody", "source": "control", "counter": "unknown_model", "like_this": 1.0,
				"reason": `uid: expected a stored model, found "nobody"`},
		}
		check.Equal(t, want, s.lines())
		failIf(t, strings.Contains(s.text.String(), "\x1b"), "expected no control characters, found %q", s.text.String())
	})
}

// TestAMassFailureIsToldInFewLines loses the attempts of many models at once, and again some minutes later.
func TestAMassFailureIsToldInFewLines(t *testing.T) {
	const models = 40
	for level, lines := range map[zerolog.Level]int{zerolog.WarnLevel: 0, zerolog.DebugLevel: models} {
		s := tell(t, testkit.Miniredis(t), level)
		for i := range models {
			s.Command(fmt.Sprintf(`{"type":"put","uid":"tbl_%d","policy":{"timeout":"1m","retries":["1m"]}}`, i))
		}
		s.apply(0)
		s.dispatch(0)
		for _, after := range []time.Duration{minute, 3 * minute} {
			s.text.Reset()
			s.dispatch(after)
			s.dispatch(after + minute)
			var counts []any
			ended := 0
			for _, line := range s.lines() {
				if event := line["event"]; event == "timeout" {
					ended++
				}
				if line["level"] == "warn" {
					counts = append(counts, line["like_this"])
				}
			}
			diff := cmp.Diff([]any{1.0, 2.0, 4.0, 8.0, 16.0, 32.0}, counts)
			failIf(t, diff != "", "%s, after %s: %s", level, after, diff)
			failIf(t, level == zerolog.DebugLevel && ended != lines, "expected all of %d told at debug level, found %d", lines, ended)
		}
	}
}

// A flood is sampled. What happens twice a minute is none, however long it goes on.
func TestWhatHappensNowAndThenIsToldEachTime(t *testing.T) {
	var text bytes.Buffer
	log := zerolog.New(&text)
	book := logbook.New("poller", &log)
	const times = 20
	for i := range times {
		book.Rejected(logbook.Rejection{Counter: "malformed", Reason: "no JSON"}, fixture.Start.Add(time.Duration(i)*thirty))
	}
	told := strings.Count(text.String(), "no JSON")
	failIf(t, told != times, "expected %d lines, found %d", times, told)
}

func TestWhatIsNotToldCostsNothing(t *testing.T) {
	log := zerolog.New(new(bytes.Buffer)).Level(zerolog.InfoLevel)
	book := logbook.New("dispatcher", &log)
	m := model.Model{UID: "a"}
	record := store.Record{Model: m}
	transition := record.Decide(m.Start(fixture.Start, "a1"), fixture.Start)
	allocations := testing.AllocsPerRun(100, func() { book.Applied(transition, fixture.Start) })
	failIf(t, allocations != 0, "expected none, found %g allocations", allocations)
}
