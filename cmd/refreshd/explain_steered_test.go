package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// told wants lines in the story of a model.
func (s *timedQueue) told(uid string, want ...string) {
	s.t.Helper()
	lines := story(s.t, s.object("explain", uid))
	for _, line := range want {
		if !slices.Contains(lines, line) {
			s.t.Errorf("%s: expected %q, found\n%s", uid, line, strings.Join(lines, "\n"))
		}
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
	expectContains(t, s.do("explain", "a"), "next: an attempt starts at 07:00 (in 1h 40m); its answer is taken to come at once\n",
		"  if it fails: refresh at 07:10 (in 1h 50m), ")
	got := s.object("model", "get", "a")
	if got["parked_by"] != "hold:h1" || got["parked_since"] != "2026-01-05T05:00:00.000Z" || got["status"] != "parked" {
		t.Errorf("expected it parked, found %v", got)
	}
	next := s.object("explain", "a")["next"].(map[string]any)
	if next["start_at"] != "2026-01-05T07:00:00.000Z" {
		t.Errorf("expected the end of the hold, found %v", next)
	}
	code, _, stderr := s.run("model", "run", "a")
	if want := "a: it does not start yet: held by ann since "; code != exitDone || !strings.Contains(stderr, want) || !strings.Contains(stderr, "moving house") {
		t.Errorf("expected %q, found %d, %q", want, code, stderr)
	}
	s.round("05:30:00")
	s.do("release", "h1")
	s.told("a", "hold:h1 is over: a dispatcher lets it go")
	s.round("05:30:00")
	s.dispatch("05:30:01")
	if lines := strings.Join(story(t, s.object("explain", "a")), "\n"); strings.Contains(lines, "held") || !strings.Contains(lines, "attempt 1 runs") {
		t.Errorf("expected it running and no more of a hold, found\n%s", lines)
	}
}

func TestAHoldWithoutAnEndForetellsNoTime(t *testing.T) {
	s := newTimedQueue(t, "05:00:00")
	s.put("{uid: a, refresh: now, policy: {timeout: 1h, retries: [10m]}}")
	s.do("hold", "--id", "h1", "--reason", "maintenance")
	s.round("05:00:00")
	expectContains(t, s.do("explain", "a"), ", until it is released: maintenance (hold h1 of all models); it starts once then\n",
		"next: an attempt starts when hold:h1 lets it go, nobody knows when; as if that were as soon as it can be:\n")
	got := s.object("explain", "a")
	if got["waits_for"] != "hold:h1" || got["next"].(map[string]any)["start_at"] != nil {
		t.Errorf("expected no time foretold, found %v", got)
	}
}

func TestAModelThatACalendarWillStopIsToldSo(t *testing.T) {
	s := newTimedQueue(t, "04:00:00")
	s.do("calendar", "put", file(t, "nightly.yaml", "{name: nightly, rrule: \"FREQ=DAILY;BYHOUR=5;BYMINUTE=0;BYSECOND=0\", dtstart: 2026-01-01T00:00:00, timezone: UTC, for: 2h}"))
	s.put("{uid: a, rrule: \"FREQ=DAILY;BYHOUR=6;BYMINUTE=0;BYSECOND=0\", policy: {timeout: 1h, closed: [nightly]}}")
	s.told("a", "when it is due: closed by the calendar nightly until 07:00 (in 3h)")
	expectContains(t, s.do("explain", "a"), "next: an attempt starts at 07:00 (in 3h); its answer is taken to come at once\n")
	s.round("06:00:00")
	s.told("a", "closed by the calendar nightly until 07:00 (in 1h); it starts once then")
	s.round("07:00:00")
	s.dispatch("07:00:00")
	if started := s.object("model", "get", "a")["started_at"]; started != "2026-01-05T07:00:00.000Z" {
		t.Errorf("expected the start that was foretold, found %v", started)
	}
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
	if text := fmt.Sprint(got["counted_by"]); text != "[limit:host=h0 limit:tenant=t1 circuit:tenant=t1]" {
		t.Errorf("expected what counts it, found %s", text)
	}
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
