package main

import (
	"fmt"
	"slices"
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

func story(t *testing.T, object map[string]any) (lines []string) {
	t.Helper()
	list, ok := object["story"].([]any)
	stopIf(t, !ok, "expected a story, found %v", object)
	for _, line := range list {
		lines = append(lines, fmt.Sprint(line))
	}
	return lines
}

func TestARetryThatTheScheduleMovedIsExplainedWithItsNumbers(t *testing.T) {
	s := failing(t)
	got := s.object("explain", "a")
	lines := story(t, got)
	policy := lines[1]
	want := []string{
		"a: refreshed by the rule FREQ=DAILY;BYHOUR=6,9,16;BYMINUTE=0;BYSECOND=0; all times are in Europe/Berlin",
		policy,
		"success of attempt 1 at 06:00:40; next: 09:00 (planned)",
		"failure 1 of 4 (HTTP 503) at 07:01; delay 0s; 07:01 would end 08:01, before planned 09:00 (before); align_planned: 07:01",
		"failure 2 of 4 (timeout) at 08:01; delay 10m; 08:11 would end 09:11, after planned 09:00 (overlaps start); align_planned: 09:00",
		"now, 08:20: scheduled: starts in 40m",
		"refresh at 09:00 (in 40m), because: retry 2/3 +10m, planned first: overlaps start",
		`fails by "timeout"; 0 other models fail by it: refreshd failures show f77d1bb58da8`,
		"gives up at Mon 12 Jan 06:00:40 (in 6d 21h) if it does not succeed before",
	}
	equal(t, want, lines)
	expectContains(t, policy, "policy inline-", ": timeout 1h, 3 retries, align_planned, then give_up, gives up after 1w without a success")
	delete(got, "story")
	at := func(at string, refresh any, why string, no float64) map[string]any {
		return map[string]any{"at": at, "refresh_at": refresh, "refresh_why": why, "attempt_no": no,
			"retries_exhausted": false, "disabled": false, "reason": ""}
	}
	wantJSON := map[string]any{
		"uid": "a", "status": "scheduled", "refresh_at": "2026-01-05T08:00:00.000Z",
		"refresh_why": "retry 2/3 +10m, planned first: overlaps start", "gives_up_at": "2026-01-12T05:00:40.000Z", "missing": nil, "waits_for": "",
		"next": map[string]any{
			"start_at": "2026-01-05T08:00:00.000Z", "give_up": nil,
			"success": at("2026-01-05T08:00:00.000Z", "2026-01-05T15:00:00.000Z", "planned", 0),
			"failure": at("2026-01-05T08:00:00.000Z", "2026-01-05T08:05:00.000Z", "retry 3/3 +5m, before planned", 3),
			"lost":    at("2026-01-05T09:00:00.000Z", "2026-01-05T09:05:00.000Z", "retry 3/3 +5m, before planned", 3),
		},
	}
	equal(t, wantJSON, got)
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
	expectContains(t, s.do("explain", "a"),
		"now, 09:30: processing: a worker has it, deadline in 30m\nattempt 3 runs since 09:00 (30m ago), deadline 10:00 (in 30m)\n",
		"next: the running attempt ends\n", "  if it succeeds: refresh at 16:00 (in 6h 30m), planned\n",
		"  if it fails: refresh at 09:35 (in 5m), retry 3/3 +5m, before planned\n",
		"  if it is lost, at 10:00 (in 30m): refresh at 10:05 (in 35m), retry 3/3 +5m, before planned\n")

	s.answer("08:30:00", "failure", "a")
	s.dispatch("08:35:00")
	expectContains(t, s.do("explain", "a"),
		`  if it fails: disabled until the next update, final: exhausted after 4; the owner reads "Cannot refresh after 4 attempts"`+"\n")

	s.answer("08:40:00", "failure", "a", `"reason":"no\u001b[2J feed"`)
	s.queue.Redis.HSet(t.Context(), s.queue.Store.Keys.Model("a"), "refresh_disabled_user_friendly_reason", "Cannot refresh after 4 attempts\x1b[2J")
	text := s.do("explain", "a")
	expectContains(t, text, "failure 4 of 4 (no [2J feed) at 09:40; next: nothing (final: exhausted after 4)\n",
		"disabled until the next update: Cannot refresh after 4 attempts", "next: nothing, until it is saved, enabled or run by hand\n")
	failIf(t, strings.ContainsAny(text, "\x1b"), "expected no control characters, found %q", text)

	expectContains(t, s.fail(exitFailed, "explain", "b"), "b: expected the uid of a stored model, found none of that name")
	expectContains(t, s.fail(exitUsage, "explain"), "expected the uid of a model, found none")
}

func TestARuleThatTakesTooManyStepsIsExplainedAsAFault(t *testing.T) {
	s := failing(t)
	s.queue.Redis.HSet(t.Context(), s.queue.Store.Keys.Model("a"),
		"rrule", "FREQ=SECONDLY;INTERVAL=86401;BYHOUR=0;BYMINUTE=0", "dtstart", "2020-01-01T00:00:00")
	expectContains(t, s.do("explain", "a"), "fault: rrule: expected rules that find their next occurrence in at most 4000 steps, found more steps after ")
}

func TestTheEndOfTheGiveUpWindowIsForetold(t *testing.T) {
	s := newTimedQueue(t, "05:00:00")
	s.put("uid: a\nrrule: FREQ=DAILY;BYHOUR=6;BYMINUTE=0;BYSECOND=0\npolicy: {timeout: 1h, retries: [], give_up_after: 3h}\n")
	expectContains(t, s.do("explain", "a"), "next: an attempt starts at 06:00 (in 1h); the lines below assume that it is answered at once\n")
	s.dispatch("06:00:00")
	s.answer("06:05:00", "failure", "a")
	expectContains(t, s.do("explain", "a"), "refresh at 09:00 (in 2h 55m), because: gives up then: no success for 3h\n",
		"next: at 09:00 (in 2h 55m) disabled until the next update, final: no success for 3h; the owner reads \"Cannot refresh")
}

func TestTheJitterOfAnAttemptToComeIsNotForetold(t *testing.T) {
	s := newTimedQueue(t, "05:00:00")
	s.put("uid: a\npolicy: {timeout: 1h, retries: {strategy: fixed, base: 10m, count: 5}, jitter: 0.2}\n")
	expectContains(t, s.do("explain", "a"), "a: refreshed when it is saved or run; all times are in UTC\n",
		"  if it fails: refresh at 05:10 (in 10m), retry 1/5 +10m, none planned; jitter may move a delay by 20%\n")
	s.dispatch("05:00:00")
	foretold := s.object("explain", "a")["next"].(map[string]any)["failure"].(map[string]any)["refresh_at"]
	failIf(t, foretold == "2026-01-05T05:10:00.000Z", "expected the jitter of a running attempt to be known")
	s.answer("05:00:00", "failure", "a")
	got := s.object("model", "get", "a")["refresh_at"]
	failIf(t, got != foretold, "expected %v, found %v", foretold, got)
	lines := story(t, s.object("explain", "a"))
	expectContains(t, lines[2], "failure 1 of 6 at 05:00; delay 10m, jitter ", ", with none planned; align_planned: 05:")
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
	for uid, want := range map[string]string{"b": "1st in line, 0.5 a second: about 2.0s", "c": "2nd in line, 0.5 a second: about 4.0s"} {
		lines := story(t, s.object("explain", uid))
		failIf(t, !slices.Contains(lines, want), "want %q, got %q", want, lines)
	}
	s.put("uid: d\nrrule: FREQ=DAILY\n")
	code, _, stderr := s.run("model", "run", "d")
	if want := "d: 3rd in line, 0.5 a second: about 6.0s\n"; code != exitDone || stderr != want {
		t.Errorf("want %q of a run, got %d, %q", want, code, stderr)
	}
	lines := story(t, s.object("explain", "d"))
	failIf(t, !slices.Contains(lines, "3rd in line, 0.5 a second: about 6.0s"), "want the place of a model that is to be started, got %q", lines)
	lines = story(t, s.object("explain", "a"))
	failIf(t, strings.Contains(strings.Join(lines, "\n"), "in line"), "want no place in line of what was taken, got %q", lines)
}

func (s *timedQueue) told(uid string, want ...string) {
	s.t.Helper()
	lines := story(s.t, s.object("explain", uid))
	for _, line := range want {
		failIf(s.t, !slices.Contains(lines, line), "%s: expected %q, found\n%s", uid, line, strings.Join(lines, "\n"))
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
	held := "held by ann since 05:00 (now), until 07:00 (in 2h): moving house (hold h1 of uid=a)"
	s.told("a", "when it is due: "+held)
	s.round("05:00:00")
	s.set("05:20:00")
	held = "held by ann since 05:00 (20m ago), until 07:00 (in 1h 40m): moving house (hold h1 of uid=a)"
	s.told("a", "now, 05:20: parked: waits for hold:h1 since 20m",
		"parked since 05:00 (20m ago); refresh was due at 05:00 (20m ago), because: saved: refresh now", held+"; it starts once then")
	expectContains(t, s.do("explain", "a"), "next: an attempt starts at 07:00 (in 1h 40m); the lines below assume that it is answered at once\n",
		"  if it fails: refresh at 07:10 (in 1h 50m), ")
	got := s.object("model", "get", "a")
	failIf(t, got["parked_by"] != "hold:h1" || got["parked_since"] != "2026-01-05T05:00:00.000Z" || got["status"] != "parked",
		"expected it parked, found %v", got)
	next := s.object("explain", "a")["next"].(map[string]any)
	failIf(t, next["start_at"] != "2026-01-05T07:00:00.000Z", "expected the end of the hold, found %v", next)
	code, _, stderr := s.run("model", "run", "a")
	want := "a: it does not start yet: held by ann since "
	failIf(t, code != exitDone || !strings.Contains(stderr, want) || !strings.Contains(stderr, "moving house"),
		"expected %q, found %d, %q", want, code, stderr)
	s.round("05:30:00")
	s.do("release", "h1")
	s.told("a", "hold:h1 is over: a dispatcher lets it go")
	s.round("05:30:00")
	s.dispatch("05:30:01")
	lines := strings.Join(story(t, s.object("explain", "a")), "\n")
	failIf(t, strings.Contains(lines, "held") || !strings.Contains(lines, "attempt 1 runs"),
		"expected it running and no more of a hold, found\n%s", lines)
}

func TestAHoldWithoutAnEndForetellsNoTime(t *testing.T) {
	s := newTimedQueue(t, "05:00:00")
	s.put("{uid: a, refresh: now, policy: {timeout: 1h, retries: [10m]}}")
	s.do("hold", "--id", "h1", "--reason", "maintenance")
	s.round("05:00:00")
	expectContains(t, s.do("explain", "a"), ", until it is released: maintenance (hold h1 of all models); it starts once then\n",
		"next: an attempt starts when hold:h1 lets it go, nobody knows when; as if that were as soon as it can be:\n")
	got := s.object("explain", "a")
	failIf(t, got["waits_for"] != "hold:h1" || got["next"].(map[string]any)["start_at"] != nil, "expected no time foretold, found %v", got)
}

func TestAModelThatACalendarWillStopIsToldSo(t *testing.T) {
	s := newTimedQueue(t, "04:00:00")
	s.do("calendar", "put", file(t, "nightly.yaml", "{name: nightly, rrule: \"FREQ=DAILY;BYHOUR=5;BYMINUTE=0;BYSECOND=0\", dtstart: 2026-01-01T00:00:00, timezone: UTC, for: 2h}"))
	s.put("{uid: a, rrule: \"FREQ=DAILY;BYHOUR=6;BYMINUTE=0;BYSECOND=0\", policy: {timeout: 1h, closed: [nightly]}}")
	s.told("a", "when it is due: closed by the calendar nightly until 07:00 (in 3h)")
	expectContains(t, s.do("explain", "a"), "next: an attempt starts at 07:00 (in 3h); the lines below assume that it is answered at once\n")
	s.round("06:00:00")
	s.told("a", "closed by the calendar nightly until 07:00 (in 1h); it starts once then")
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
	s.told("a", "counted by limit tenant=t1 (1 of 1 run, by policy p)", "counted by the circuit of tenant=t1")
	s.told("b", "waits for limit tenant=t1 (1 of 1 run, by policy p); 1st of 2 that wait")
	s.told("c", "waits for limit tenant=t1 (1 of 1 run, by policy p); 2nd of 2 that wait")
	s.do("limit", "set", "tenant=t1", "--running", "1", "--for", "1h", "--by", "ann", "--reason", "slow")
	s.told("c", "waits for limit tenant=t1 (1 of 1 run, set by ann since 05:00 (now) until 06:00 (in 1h): slow); 2nd of 2 that wait")
	got := s.object("model", "get", "a")
	text := fmt.Sprint(got["counted_by"])
	failIf(t, text != "[limit:host=h0 limit:tenant=t1 circuit:tenant=t1]", "expected what counts it, found %s", text)
	s.model("d", "t1", "h9")
	s.told("d", "if it were due now, it would wait for limit tenant=t1 (1 of 1 run, set by ann since 05:00 (now) until 06:00 (in 1h): slow)")
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
	open := "the circuit of tenant=t1, open since 05:00:01 (1s ago): 2 of its last 2 attempts failed, it opens at 2 of 3; the next probe at 05:05:01 (in 4m"
	s.set("05:00:02")
	expectContains(t, s.do("explain", "c"), "if it were due now, it would wait for "+open)
	s.round("05:00:02")
	expectContains(t, s.do("explain", "c"), "waits for "+open, "; 1st of 1 that wait\n", "next: an attempt starts when circuit:tenant=t1 lets it go, nobody knows when;")
	s.model("d", "t1", "h4")
	s.round("05:00:02")
	s.dispatch("05:05:01")
	expectContains(t, s.do("explain", "c"), "is the probe: the circuit of tenant=t1, open since 05:00:01 (5m ago): 2 of its last 2 attempts failed, it opens at 2 of 3; c tries it\n")
	expectContains(t, s.do("explain", "d"), "waits for the circuit of tenant=t1, ", "; c tries it; 1st of 1 that wait\n")
	s.do("circuit", "open", "tenant=t1", "--by", "ann", "--reason", "their proxy", "--probe", "1h")
	expectContains(t, s.do("explain", "d"), "waits for the circuit of tenant=t1, open since 05:00:01 (5m ago) by ann: their proxy; the next probe at ")
	s.do("circuit", "close", "tenant=t1")
	s.told("d", "circuit:tenant=t1 is over: a dispatcher lets it go")
}
