package main

import (
	"fmt"
	"strings"
	"testing"
)

const explained = `
uid: a
rrule: FREQ=DAILY;BYHOUR=6,9,16;BYMINUTE=0;BYSECOND=0
timezone: Europe/Berlin
dtstart: 2026-01-01T00:00:00
policy: {timeout: 1h, retries: [0, 10m, 5m], on_exhausted: give_up, give_up_after: 1w}
`

// failing brings model a to its second failure, a timeout at 08:01: the retry of 08:11 would last beyond 09:00.
func failing(t *testing.T) *timedQueue {
	s := newTimedQueue(t, "04:00:00")
	s.put(explained)
	s.dispatch("05:00:00") // 06:00 in Berlin
	s.answer("05:00:40", "success", "a")
	s.do("model", "run", "a")
	s.dispatch("05:50:00")
	s.answer("06:01:00", "failure", "a", `"reason":"HTTP 503"`)
	s.dispatch("06:01:00")
	s.dispatch("07:01:00")
	s.set("07:20:00")
	return s
}

// told is the whole output about a model, or in JSON as story.
func (s *timedQueue) told(uid string, want ...string) {
	s.t.Helper()
	expectContains(s.t, s.do("explain", uid), want...)
}

// The tests of internal/preview/explain have the sentences.
func TestARetryThatTheScheduleMovedIsExplainedWithItsNumbers(t *testing.T) {
	s := failing(t)
	got := s.object("explain", "a", "--trace")
	telling, _ := got["telling"].(map[string]any)
	for field, facts := range map[string][]string{"state": {"2 times", "07:01"}, "next": {"09:00", "08:11"}, "last": {"06:00"}} {
		expectContains(t, fmt.Sprint(telling[field]), facts...)
	}
	failIf(t, telling["act"] != false, "expected nothing to do for anybody, found %v", telling)
	expectContains(t, fmt.Sprint(got["trace"]), "HTTP 503", "delay 10m", "08:11, planned 09:00: overlaps start; align_planned; next 09:00", `"timeout":"1h"`, "FREQ=DAILY")
	expectContains(t, fmt.Sprint(got["story"]), "12 Jan")
	delete(got, "telling")
	delete(got, "trace")
	delete(got, "story")
	at := func(at string, refresh any, why string, no float64) map[string]any {
		return map[string]any{"at": at, "refresh_at": refresh, "refresh_why": why, "attempt_no": no,
			"retries_exhausted": false, "disabled": false, "reason": ""}
	}
	wantJSON := map[string]any{
		"uid": "a", "status": "scheduled", "refresh_at": "2026-01-05T08:00:00.000Z",
		"refresh_why": "retry 2 of 3 waits for planned, would overlap", "gives_up_at": "2026-01-12T05:00:40.000Z", "missing": nil, "waits_for": "",
		"next": map[string]any{
			"start_at": "2026-01-05T08:00:00.000Z", "give_up": nil,
			"success": at("2026-01-05T08:00:00.000Z", "2026-01-05T15:00:00.000Z", "planned", 0),
			"failure": at("2026-01-05T08:00:00.000Z", "2026-01-05T08:05:00.000Z", "retry 3 of 3 after 5m, ends before planned", 3),
			"lost":    at("2026-01-05T09:00:00.000Z", "2026-01-05T09:05:00.000Z", "retry 3 of 3 after 5m, ends before planned", 3),
		},
	}
	equal(t, wantJSON, got)
	plain := s.do("explain", "a")
	failIf(t, strings.Contains(plain, "align_planned"), "expected no trace that nobody asked for, found\n%s", plain)
	failIf(t, strings.Count(plain, "Europe/Berlin") != 1, "expected the zone once in\n%s", plain)
}

func TestWhatComesNextComesTrue(t *testing.T) {
	for outcome, end := range map[string]func(s *timedQueue){
		"success": func(s *timedQueue) { s.answer("08:00:00", "success", "a") },
		"failure": func(s *timedQueue) { s.answer("08:00:00", "failure", "a") },
		"lost":    func(s *timedQueue) { s.dispatch("09:00:00") },
	} {
		t.Run(outcome, func(t *testing.T) {
			s := failing(t)
			foretold := s.object("explain", "a")["next"].(map[string]any)[outcome].(map[string]any)
			s.dispatch("08:00:00")
			end(s)
			got := s.object("model", "get", "a")
			for _, field := range []string{"refresh_at", "refresh_why", "attempt_no"} {
				failIf(t, got[field] != foretold[field], "%s: expected %v, found %v", field, foretold[field], got[field])
			}
		})
	}
}

func TestAModelIsExplainedInEveryState(t *testing.T) {
	s := failing(t)
	s.dispatch("08:00:00")
	s.set("08:30:00")
	s.told("a", "09:00", "before 10:00", "succeeds: next refresh at 16:00", "fails: next retry at 09:35", "answers: next retry at 10:05")

	s.answer("08:30:00", "failure", "a")
	s.dispatch("08:35:00")
	s.told("a", "fails: it is disabled", "Cannot refresh after 4 attempts")

	s.answer("08:40:00", "failure", "a", `"reason":"no\u001b[2J feed"`)
	s.queue.Redis.HSet(t.Context(), s.queue.Store.Keys.Model("a"), "refresh_disabled_user_friendly_reason", "Cannot refresh after 4 attempts\x1b[2J")
	text := s.do("explain", "a", "--trace")
	expectContains(t, text, "no [2J feed", "Cannot refresh after 4 attempts")
	failIf(t, strings.ContainsAny(text, "\x1b"), "expected no control characters, found %q", text)
	failIf(t, s.object("explain", "a")["telling"].(map[string]any)["act"] != true, "expected that somebody must act")

	expectContains(t, s.fail(exitFailed, "explain", "b"), "b: expected the uid of a stored model, found none of that name")
	expectContains(t, s.fail(exitUsage, "explain"), "expected the uid of a model, found none")
}

func TestARuleThatTakesTooManyStepsIsExplainedAsAFault(t *testing.T) {
	s := failing(t)
	s.queue.Redis.HSet(t.Context(), s.queue.Store.Keys.Model("a"),
		"rrule", "FREQ=SECONDLY;INTERVAL=86401;BYHOUR=0;BYMINUTE=0", "dtstart", "2020-01-01T00:00:00")
	s.told("a", "fault", "rrule: expected rules that find their next occurrence in at most 4000 steps, found more steps after ")
}

func TestTheEndOfTheGiveUpWindowIsForetold(t *testing.T) {
	s := newTimedQueue(t, "05:00:00")
	s.put("uid: a\nrrule: FREQ=DAILY;BYHOUR=6;BYMINUTE=0;BYSECOND=0\npolicy: {timeout: 1h, retries: [], give_up_after: 3h}\n")
	s.told("a", "06:00")
	s.dispatch("06:00:00")
	s.answer("06:05:00", "failure", "a")
	s.told("a", "disabled at 09:00", "3 hours")
	end := s.object("explain", "a")["next"].(map[string]any)["give_up"].(map[string]any)
	failIf(t, end["at"] != "2026-01-05T09:00:00.000Z" || end["disabled"] != true, "expected the end at 09:00, found %v", end)
}

func TestTheJitterOfAnAttemptToComeIsNotForetold(t *testing.T) {
	s := newTimedQueue(t, "05:00:00")
	s.put("uid: a\npolicy: {timeout: 1h, retries: {strategy: fixed, base: 10m, count: 5}, jitter: 0.2}\n")
	s.told("a", "05:10", "20%")
	s.dispatch("05:00:00")
	foretold := s.object("explain", "a")["next"].(map[string]any)["failure"].(map[string]any)["refresh_at"]
	failIf(t, foretold == "2026-01-05T05:10:00.000Z", "expected the jitter of a running attempt to be known")
	s.answer("05:00:00", "failure", "a")
	got := s.object("model", "get", "a")["refresh_at"]
	failIf(t, got != foretold, "expected %v, found %v", foretold, got)
	expectContains(t, s.do("explain", "a", "--trace"), "failure of attempt 1 at 05:00", "delay 10m, jitter ", "none planned; align_planned; next 05:")
}

func TestAQueuedAttemptIsToldItsPlaceInLineAndThePaceOfTheLine(t *testing.T) {
	s := newTimedQueue(t, "04:00:00")
	for _, uid := range []string{"a", "b", "c"} {
		s.put("uid: " + uid + "\nrefresh: now")
		s.round("04:00:00")
	}
	s.round("04:00:01") // a is the first still
	s.queue.Take()
	s.round("04:00:02") // b is, two seconds after a was
	s.told("c", "1 is before it; it starts in about 4 seconds")
	s.put("uid: d\nrrule: FREQ=DAILY\n")
	code, _, stderr := s.run("model", "run", "d")
	if want := "d: 2 are before it; it starts in about 6 seconds\n"; code != exitDone || stderr != want {
		t.Errorf("want %q of a run, got %d, %q", want, code, stderr)
	}
	s.told("d", "2 are before it; it starts in about 6 seconds")
	text := s.do("explain", "a")
	failIf(t, strings.Contains(text, "before it"), "want no place in line of what was taken, got %q", text)
}

func TestARunWithoutADispatcherSaysSo(t *testing.T) {
	s := newTimedQueue(t, "04:00:00")
	s.put("uid: a\nrrule: FREQ=DAILY\n")
	must(t, s.queue.Redis.Del(t.Context(), s.queue.Store.Keys.Dispatchers).Err())
	_, _, told := s.run("model", "run", "a")
	if want := "a: it does not start yet: no dispatcher is running\n"; told != want {
		t.Errorf("got %q, want %q", told, want)
	}
}

const steeredPolicy = `{name: p, timeout: 10m, retries: [0s, 0s, 0s], on_exhausted: give_up, limits: [{key: "{label.tenant}", running: 1}, {key: "{host(input_url)}", rate: 1/1m}],
  circuit: {key: "{label.tenant}", open_after: "2 of 3", on: [http_5xx], probe: 5m}}`

// model saves a one-shot of a tenant and a host, which is due now.
func (s *timedQueue) model(uid, tenant, host string) {
	s.t.Helper()
	s.put(fmt.Sprintf("{uid: %s, policy: p, labels: {tenant: %s}, payload: {input_url: \"http://%s/x\"}}", uid, tenant, host))
}

func TestAHeldModelIsExplainedWithWhoWantsItWhyAndUntilWhen(t *testing.T) {
	s := newTimedQueue(t, "05:00:00")
	s.put("{uid: a, refresh: now, policy: {timeout: 1h, retries: [10m]}}")
	s.do("hold", "--id", "h1", "-l", "uid=a", "--for", "2h", "--reason", "moving house", "--by", "ann")
	s.told("a", "ann", "07:00", "moving house")
	s.round("05:00:00")
	s.set("05:20:00")
	s.told("a", "Due since 05:00", "ann", "moving house", "starts at 07:00", "fails: next retry at 07:10")
	got := s.object("model", "get", "a")
	failIf(t, got["parked_by"] != "hold:h1" || got["parked_since"] != "2026-01-05T05:00:00.000Z" || got["status"] != "parked",
		"expected it parked, found %v", got)
	next := s.object("explain", "a")["next"].(map[string]any)
	failIf(t, next["start_at"] != "2026-01-05T07:00:00.000Z", "expected the end of the hold, found %v", next)
	code, _, stderr := s.run("model", "run", "a")
	failIf(t, code != exitDone || !strings.Contains(stderr, "ann") || !strings.Contains(stderr, "moving house"), "expected the hold, found %d, %q", code, stderr)
	s.round("05:30:00")
	s.do("release", "h1")
	s.told("a", "in a moment: hold h1 no longer stops it")
	s.round("05:30:00")
	s.dispatch("05:30:01")
	text := s.do("explain", "a")
	failIf(t, strings.Contains(text, "moving house"), "expected no more of a hold, found\n%s", text)
}

func TestAHoldWithoutAnEndForetellsNoTime(t *testing.T) {
	s := newTimedQueue(t, "05:00:00")
	s.put("{uid: a, refresh: now, policy: {timeout: 1h, retries: [10m]}}")
	s.do("hold", "--id", "h1", "--reason", "maintenance")
	s.round("05:00:00")
	s.told("a", "maintenance", "when somebody releases hold h1", "for a start once due, and an answer at once")
	got := s.object("explain", "a")
	failIf(t, got["waits_for"] != "hold:h1" || got["next"].(map[string]any)["start_at"] != nil, "expected no time foretold, found %v", got)
}

func TestAModelThatACalendarWillStopIsToldSo(t *testing.T) {
	s := newTimedQueue(t, "04:00:00")
	s.do("calendar", "put", file(t, "nightly.yaml", "{name: nightly, rrule: \"FREQ=DAILY;BYHOUR=5;BYMINUTE=0;BYSECOND=0\", dtstart: 2026-01-01T00:00:00, timezone: UTC, for: 2h}"))
	s.put("{uid: a, rrule: \"FREQ=DAILY;BYHOUR=6;BYMINUTE=0;BYSECOND=0\", policy: {timeout: 1h, closed: [nightly]}}")
	s.told("a", "Due at 06:00", "starts at 07:00", "nightly")
	s.round("06:00:00")
	s.told("a", "Due since 06:00", "starts at 07:00", "nightly")
	s.round("07:00:00")
	s.dispatch("07:00:00")
	started := s.object("model", "get", "a")["started_at"]
	failIf(t, started != "2026-01-05T07:00:00.000Z", "expected the start that was foretold, found %v", started)
}

func TestAModelThatWaitsForALimitIsToldWhoseAndItsPlace(t *testing.T) {
	s := newTimedQueue(t, "05:00:00")
	s.do("policy", "put", file(t, "p.yaml", steeredPolicy))
	for i, uid := range []string{"a", "b", "c"} {
		s.model(uid, "t1", fmt.Sprint("h", i))
	}
	s.dispatch("05:00:00")
	s.told("a", "tenant=t1 allows 1 at a time, and 1 runs")
	s.told("b", "limit tenant=t1 is full", "and 1 runs", "1st of 2")
	s.told("c", "limit tenant=t1 is full", "2nd of 2")
	s.do("limit", "set", "tenant=t1", "--running", "1", "--for", "1h", "--by", "ann", "--reason", "slow")
	s.told("c", "ann has set it until 06:00")
	got := s.object("model", "get", "a")
	text := fmt.Sprint(got["counted_by"])
	failIf(t, text != "[limit:host=h0 limit:tenant=t1 circuit:tenant=t1]", "expected what counts it, found %s", text)
	s.model("d", "t1", "h9")
	s.told("d", "Limit tenant=t1 is full", "when a running model of tenant=t1 ends")
}

func TestAModelThatWaitsForAClosedKeyIsToldUntilWhenAndWhoseAnswerClosedIt(t *testing.T) {
	s := newTimedQueue(t, "05:00:00")
	s.do("policy", "put", file(t, "p.yaml", steeredPolicy))
	s.model("a", "t1", "h1")
	const slots = "1767592800000000 1767592800000000 tbl_1 (http_429)" // 2026-01-05T06:00:00Z
	must(t, s.queue.Redis.Set(t.Context(), s.queue.Store.Keys.Rate("tenant=t1"), slots, 0).Err())
	s.told("a", "It is closed until 06:00 by the answer to tbl_1 (http_429)", "starts at 06:00")
	_, _, stderr := s.run("model", "run", "a")
	expectContains(t, stderr, "it does not start yet: limit tenant=t1 is closed until 2026-01-05 06:00:00 UTC")
	s.dispatch("05:00:00")
	s.told("a", "limit tenant=t1 is closed until 06:00", "It is closed until 06:00 by the answer to tbl_1 (http_429)", "starts at 06:00")
}

func TestAModelThatWaitsForACircuitIsToldSinceWhenWhyAndWhoTries(t *testing.T) {
	s := newTimedQueue(t, "05:00:00")
	s.do("policy", "put", file(t, "p.yaml", steeredPolicy))
	for i, uid := range []string{"a", "b"} {
		s.model(uid, "t1", fmt.Sprint("h", i))
		s.dispatch(fmt.Sprintf("05:00:0%d", i))
		s.answer(fmt.Sprintf("05:00:0%d", i), "failure", uid, `"error_type":"http_503"`, `"retryable":false`)
	}
	s.model("c", "t1", "h3")
	open := "opened at 05:00: 2 of the last 2 attempts failed"
	s.set("05:00:02")
	s.told("c", "The circuit of tenant=t1 is open", "one waiting model", open)
	s.round("05:00:02")
	s.told("c", "the circuit of tenant=t1 is open", open, "1st of 1", "At 05:05 one waiting model")
	failIf(t, s.object("explain", "c")["waits_for"] != "circuit:tenant=t1", "expected that nobody knows when it starts")
	s.model("d", "t1", "h4")
	s.round("05:00:02")
	s.dispatch("05:05:01")
	s.told("c", "tests the circuit of tenant=t1")
	s.told("d", "c tests it now", "1st of 1", open)
	s.do("circuit", "open", "tenant=t1", "--by", "ann", "--reason", "their proxy", "--probe", "1h")
	s.told("d", "opened by ann at 05:00", "their proxy", "At 06:05 one waiting model")
	s.do("circuit", "close", "tenant=t1")
	s.told("d", "in a moment")
}
