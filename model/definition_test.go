package model

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

func TestADefinitionIsRead(t *testing.T) {
	got, err := ParseDefinition(jsonOf(t, `{"uid":"tbl_1","payload":{"input_url":"https://example.com/a?b=1&c=<2>","n":1.50},`+
		`"rrule":"FREQ=DAILY;BYHOUR=6,16","timezone":"Europe/Berlin","dtstart":"2026-01-01","refresh":"planned",`+sixRetries+`}`))
	must(t, err)
	inline := got.Inline
	got.Inline, got.inline = nil, nil
	want := Definition{UID: "tbl_1", Payload: `{"input_url":"https://example.com/a?b=1&c=<2>","n":1.50}`, Rule: "FREQ=DAILY;BYHOUR=6,16",
		Timezone: "Europe/Berlin", Dtstart: "2026-01-01T00:00:00", Refresh: RefreshPlanned, PolicyName: inline.ContentName()}
	failIf(t, !reflect.DeepEqual(got, want), "\n got %+v\nwant %+v", got, want)
	failIf(t, inline.Timeout != time.Hour || inline.MaxRetries() != 6 || inline.OnExhausted != policy.GiveUp, "policy %+v", inline)
}

func TestADefinitionIsRefusedWithTheField(t *testing.T) {
	_, noPolicy := policy.Parse(7)
	fields := strings.TrimSuffix(strings.TrimPrefix(noPolicy.Error(), "expected an object with "), ", found 7")
	for _, test := range []struct{ text, want string }{
		// As a whole
		{`[]`, "expected an object with uid, payload, rrule, timezone, dtstart, refresh, policy, labels, found a list"},
		{`{"uid":"t","url":1}`, "url: expected one of uid, payload, rrule, timezone, dtstart, refresh, policy, labels, found an unknown field"},

		// uid
		{`{}`, `uid: expected 1-200 letters, digits or _.:@/+=~- (first a letter or digit), found ""`},
		{`{"uid":7}`, "uid: expected a text, found 7"},
		{`{"uid":"a b"}`, `uid: expected 1-200 letters, digits or _.:@/+=~- (first a letter or digit), found "a b"`},

		// payload
		{`{"uid":"t","payload":[]}`, "payload: expected an object, found a list"},
		{`{"uid":"t","payload":{"a":[{"n":1e999999}]}}`, "payload.a[0].n: expected a number that a float64 can hold, found 1e999999"},
		{`{"uid":"t","payload":{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}}`, "payload: expected values at most 100 levels deep, found more"},

		// schedule
		{`{"uid":"t","rrule":"FREQ=DAILY","timezone":1}`, "timezone: expected a text, found 1"},
		{`{"uid":"t","rrule":"FREQ=DAILY","dtstart":2026}`, "dtstart: expected a text, found 2026"},
		{`{"uid":"t","rrule":"FREQ=DAILY","dtstart":"tomorrow"}`, `dtstart: expected a wall clock time such as "2026-01-31T06:00:00", without Z or offset, from 1970 to 2200, found "tomorrow"`},

		// refresh
		{`{"uid":"t","refresh":"later"}`, `refresh: expected now or planned, found "later"`},

		// policy
		{`{"uid":"t","policy":7}`, "policy: expected an object with " + fields + ", found 7"},
		{`{"uid":"t","policy":"not a name"}`, `policy: expected a policy, or the name of a stored one, found "not a name"`},
		{`{"uid":"t","policy":{"name":"p"}}`, `policy.name: expected a policy without name, or the name alone of a stored one, found "p"`},
	} {
		_, err := ParseDefinition(jsonOf(t, test.text))
		field := (*document.Error)(nil)
		failIf(t, !errors.As(err, &field) || err.Error() != test.want, "%s:\n got %v\nwant %s", test.text, err, test.want)
	}
}

// The rule may come from the policy, so only a save, which knows both, can find that there is none.
func TestWhatSpeaksOfAScheduleNeedsOne(t *testing.T) {
	scheduled, windowed := policy.Policy{Rule: "FREQ=DAILY"}, policy.Policy{RetryWindow: "FREQ=DAILY;BYHOUR=9"}
	const noRule = "rrule: expected a rule, as dtstart is given, found nothing"
	const noPlan = `refresh: expected now, as there is no rrule to plan with, found "planned"`
	for _, test := range []struct {
		fields string
		policy policy.Policy
		want   string // empty: accepted
	}{
		{`"timezone":"Europe/Berlin"`, policy.Policy{}, ""}, // a whole catalogue is saved with one
		{`"timezone":"Mars/Base"`, policy.Policy{}, `timezone: expected an IANA time zone such as "Europe/Berlin", found "Mars/Base"`},
		{`"dtstart":"2026-01-01"`, policy.Policy{}, noRule},
		{`"refresh":"planned"`, policy.Policy{}, noPlan},

		// The policy has a rule
		{`"timezone":"Europe/Berlin"`, scheduled, ""},
		{`"dtstart":"2026-01-01"`, scheduled, ""},
		{`"refresh":"planned"`, scheduled, ""},

		// The policy has no rule, but a retry window, which has a zone
		{`"refresh":"planned"`, windowed, noPlan},
	} {
		definition, err := ParseDefinition(jsonOf(t, `{"uid":"t",`+test.fields+`}`))
		must(t, err)
		_, _, err = new(Model).Put(definition, test.policy, false, monday)
		field := (*document.Error)(nil)
		failIf(t, test.want == "" && err != nil || test.want != "" && (!errors.As(err, &field) || err.Error() != test.want),
			"%s with %+v:\n got %v\nwant %s", test.fields, test.policy, err, test.want)
	}
}

func TestTheFirstSaveDecidesWhenTheFirstRefreshIs(t *testing.T) {
	runStories(t, []storyTest{
		{daily, "", "#0, next 06:00: planned"}, {banner, "", "#0, next 00:00: saved: refresh now"},
		{daily + `,"refresh":"now"`, "", "#0, next 00:00: saved: refresh now"},
		{`"rrule":"FREQ=DAILY;COUNT=1","dtstart":"2020-01-01"`, "", "#0, next never: finished: no planned refresh left"},

		// The schedule counts from midnight of the day of creation; that is an occurrence, and it is consumed
		{`"rrule":"FREQ=DAILY"`, "", "#0, next 00:00+1: planned"},
		{`"rrule":"FREQ=HOURLY;INTERVAL=5","timezone":"Europe/Berlin"`, "", "#0, next 04:00: planned"}, // midnight in Berlin is 23:00 UTC
	})
	s := tell(t, daily, "")
	failIf(t, s.decision.Event != EventCreate || s.decision.Definition == nil, "found %+v", s.decision)
	before := s.m // is not touched
	definition := Definition{UID: "tbl_1", Payload: `{"size":2}`, PolicyName: "fast", Refresh: RefreshNow}
	_, outcome, err := s.m.Put(definition, policy.Policy{Timeout: time.Second}, true, clock("06:10"))
	failIf(t, err != nil || outcome != Applied || !reflect.DeepEqual(s.m, before), "%s, %v: became %+v", outcome, err, s.m)
}

func TestASaveThatChangesNothingChangesNothing(t *testing.T) {
	for _, steps := range []string{
		"05:00 put", "06:00 start | 06:10 put", "06:00 start | 06:10 failure | 06:10 put", "06:00 put",
		`06:00 start | 06:10 failure "retryable":false | 09:00 put`,
		`05:00 put "refresh":"planned"`, `05:00 put "payload":{}`,
	} {
		cut := strings.LastIndex(steps, "|")
		s := tell(t, daily, steps[:max(0, cut)])
		before := s.m
		s.then(steps[cut+1:])
		failIf(t, s.outcome != Unchanged || !reflect.DeepEqual(s.m, before), "%s: outcome %q, %s", steps, s.outcome, s)
	}
}

func TestASaveThatChangesTheDefinitionEnablesAndBeginsAnew(t *testing.T) {
	const disabled = `06:00 start | 06:10 failure "retryable":false | `
	runStories(t, []storyTest{
		{daily, disabled + `09:00 put "payload":{"size":2},"refresh":"planned"`, "#0, next 16:00: planned"},
		{daily, disabled + `09:00 put "payload":{"size":2},"refresh":"now"`, "#0, next 09:00: saved: refresh now"},
		{daily, disabled + `09:00 put "refresh":"now"`, "#0, next 09:00: saved: refresh now"},
		{banner, `00:00 start | 00:01 failure "retryable":false | 09:00 put "payload":{"size":2}`, "#0, next 09:00: saved: refresh now"},

		// While a retry waits
		{daily, `06:00 start | 06:10 failure | 06:10 start | 06:20 failure | 06:20 put "payload":{"size":2},"refresh":"planned"`, "#0, next 16:00: planned"},
		{daily, `06:00 start | 06:10 failure | 06:10 start | 06:20 failure | 06:20 put "refresh":"now"`, "#2, next 06:20: saved: refresh now"},
		{banner, `00:00 start | 00:00:10 failure | 00:00:10 start | 00:00:20 failure | 00:00:30 put "payload":{"size":2}`, "#0, next 00:00:30: saved: refresh now"},

		// While it is due: it stays due, since when it was
		{daily, `06:05 put "payload":{"size":2}`, "#0, next 06:00: saved while due"},
		{daily, `05:59 put "payload":{"size":2}`, "#0, next 06:00: planned"},
		{daily, `06:05 put "payload":{"size":2},"refresh":"now"`, "#0, next 06:05: saved: refresh now"},

		// While it waits after its last planned refresh: nothing else would ever start it
		{lastDay, `16:00 start | 16:10 failure | 16:10 start | 16:15 failure | 16:15 put "policy":"fast"`, "#0, next 16:16: saved while waiting: nothing planned"},
		{lastDay, `16:00 start | 16:10 postponed "retry_after":"1h" | 16:20 put "payload":{"size":1}`, "#0, next 17:10: saved while waiting: nothing planned"},

		// A finished one-shot
		{banner, `00:00 start | 00:00:10 success | 09:00 put "payload":{"size":2}`, "#0, next 09:00: saved: refresh now"},
		{banner, `00:00 start | 00:00:10 success | 09:00 put "refresh":"now"`, "#0, next 09:00: saved: refresh now"},

		// What else is part of the definition
		{daily, disabled + `09:00 put "policy":{"timeout":"2h"}`, "#0, next 16:00: planned"},
		{daily, disabled + `09:00 put "policy":"fast"`, "#0, next 16:00: planned"},
		{daily, disabled + `09:00 put "timezone":"Asia/Tokyo"`, "#0, next 21:00: planned"}, // 06:00 in Tokyo
		{daily, disabled + `09:00 put "dtstart":"2026-01-01T00:30:00"`, "#0, next 16:30: planned"},
		{daily, disabled + `09:00 put "rrule":"","dtstart":null`, "#0, next 09:00: saved: refresh now"},
	})
	s := tell(t, daily, disabled+`09:00 put "payload":{"size":2}`)
	if s.decision.Event != EventUpdate || s.m.DisabledReason != "" || !s.m.FailingSince.Equal(clock("06:10")) || s.m.FingerprintID == "" || s.m.FinalFailureAt.IsZero() {
		t.Errorf("until a success the model is failing, as it has not succeeded since, and keeps that it was given up, so that the recovery is told: %+v", s.m.State)
	}
}

func TestOnlyASuccessEndsTheFailingOfAModelWhoeverEnablesIt(t *testing.T) {
	const failed = `06:00 start | 06:10 failure "retryable":false | `
	for _, steps := range []string{
		"09:00 enable", "09:00 run", `09:00 run "force":true`, `09:00 put "payload":{"size":2}`, `09:00 put "refresh":"now"`,
		`07:00 disable | 09:00 enable`, `07:00 disable | 09:00 run "force":true`, "09:00 enable | 16:00 start | 16:10 failure",
	} {
		s := tell(t, daily, failed+steps)
		if got, want := s.m.FailingSince, clock("06:10"); got != want || s.m.FingerprintID == "" || s.m.Disabled {
			t.Errorf("%s: failing since %s, want %s: %s", steps, clockText(got), clockText(want), s)
		}
		s.do(clock("17:00"), "run", `"force":true`)
		s.then("17:00 start | 17:10 success")
		failIf(t, !s.m.FailingSince.IsZero() || s.m.FingerprintID != "", "%s, and a success: failing since %s", steps, clockText(s.m.FailingSince))
	}
}

func TestANewPayloadIsTheCureOfAFailingModelAndStartsAtOnce(t *testing.T) {
	const failing = "06:00 start | 06:10 failure | 06:10 start | 06:20 failure | "
	const disabled = `06:00 start | 06:10 failure "retryable":false | `
	runStories(t, []storyTest{
		{daily, failing + `06:20 put "payload":{"size":2}`, "#0, next 06:20: saved: refresh now"},
		{daily, disabled + `09:00 put "payload":{"size":2}`, "#0, next 09:00: saved: refresh now"},

		// Another save in between changes nothing of that
		{daily, failing + `06:20 put "policy":"fast" | 06:21 put "payload":{"size":2}`, "#0, next 06:21: saved: refresh now"},

		// It is one only of what fails
		{daily, `06:00 start | 06:10 success | 09:00 put "payload":{"size":2}`, "#0, next 16:00: planned"},
		{daily, failing + `06:21 start | 06:30 success | 09:00 put "payload":{"size":2}`, "#0, next 16:00: planned"},
		{daily, failing + `06:20 put "policy":"fast"`, "#0, next 16:00: planned"},
	})
	s := tell(t, daily, disabled+`09:00 put "payload":{"size":2}`)
	failIf(t, !s.m.Urgent(), "who mends his model waits behind the backlog")
}

// What was asked for while an attempt waited in line is still asked for when no worker takes it, and when one has to stop.
func TestWhatAHandAskedForStaysUrgentUntilItIsDone(t *testing.T) {
	skips := misfiring("skip")
	for steps, definition := range map[string]string{
		`06:00 wake | 06:05 taken | 06:10 put "refresh":"now" | 06:30 interrupted`: daily,
		`06:10 run | 06:10 start | 07:10 withdraw`:                                 daily,
		`06:00 wake | 06:10 put "refresh":"now" | 07:00 withdraw`:                  skips,
		`06:10 run | 06:10 start | 06:11 taken | 06:20 interrupted`:                daily,
	} {
		s := tell(t, definition, steps)
		failIf(t, !s.m.Urgent(), "%s: it waits behind the backlog: %s, for %q", steps, s, s.m.Trigger)
	}
	tell(t, skips, `06:00 wake | 06:10 put "refresh":"now" | 07:00 withdraw | 07:00 wake`).
		expect("#1 a2 until 08:00, next 08:05: on timeout: retry 1 of 2 after 5m, ends before planned")
}

func TestWhatAHandHasStoppedStaysSoWhateverIsSaved(t *testing.T) {
	const stopped = `05:00 disable "reason":"has not paid" | `
	const want = "#0 disabled (has not paid): disabled by hand"
	runStories(t, []storyTest{
		{daily, stopped + `09:00 put "payload":{"size":2}`, want},
		{daily, stopped + `09:00 put "refresh":"now"`, want},
		{banner, `00:00 disable "reason":"has not paid" | 09:00 put "payload":{"size":2}`, want},
		{daily, `06:00 start | 06:10 failure "retryable":false | 07:00 disable "reason":"has not paid" | 09:00 put "payload":{"size":2}`, "#0 disabled (has not paid): disabled by hand"},
		{daily, `06:00 start | 06:10 failure "retryable":false | 07:00 disable "reason":"Cannot refresh after 1 attempt" | 09:00 put "payload":{"size":2}`,
			"#0 disabled (Cannot refresh after 1 attempt): disabled by hand"},

		// What a Save button sends: put, then enable
		{daily, stopped + `09:00 put "rrule":"FREQ=HOURLY" | 09:00 enable`, "#0, next 10:00: planned"},
		{daily, stopped + `09:00 run "force":true`, "#0, next 09:00: run by hand"},
	})
	s := tell(t, daily, stopped+`09:00 put "payload":{"size":2}`)
	failIf(t, s.m.Payload != `{"size":2}` || s.m.DisabledBy != StoppedByHand, "the save was lost, or the stop: %+v", s.m)
}

func TestASaveLeavesTheRunningAttemptAlone(t *testing.T) {
	const second = "06:00 start | 06:10 failure | 06:10 start | "
	runStories(t, []storyTest{
		// The attempt counts as the first of the new definition
		{daily, second + `06:20 put "payload":{"size":2}`, "#1 a2 until 07:10, next 07:10: on timeout: retry 1 of 6 at once, ends before planned"},
		{daily, second + `06:20 put "payload":{"size":2} | 06:30 failure`, "#1, next 06:30: retry 1 of 6 at once, ends before planned"},
		{daily, second + `06:20 put "payload":{"size":2} | 07:10 withdraw`, "#0, next 07:10: withdrawn: no worker took it"},

		// Its expected timeout is judged by the new definition, its deadline stays
		{daily, second + `06:20 put "policy":{"timeout":"2h","retries":["30m"]}`, "#1 a2 until 07:10, next 07:40: on timeout: retry 1 of 1 after 30m, ends before planned"},
		{daily, second + `06:20 put "policy":{"retries":[],"on_exhausted":"give_up"}`, "#1 a2 until 07:10, next never: on timeout: disabled after 1 failure, no retry left"},
		{daily, second + `06:20 put "rrule":"FREQ=HOURLY"`, "#1 a2 until 07:10, next 08:00: on timeout: retry 1 of 6 waits for planned, would overlap"},

		// Again: asked for at once, but only one attempt runs at a time
		{daily, second + `06:11 taken | 06:20 put "refresh":"now"`, "#2 a2 until 07:10 again, next 07:10: saved while running: again"},
		{daily, second + `06:11 taken | 06:20 put "payload":{"size":2},"refresh":"now"`, "#1 a2 until 07:10 again outdated, next 07:10: saved while running: again"},
		{daily, second + `06:20 put "refresh":"now"`, "#2 a2 until 07:10, next 07:11: on timeout: retry 2 of 6 after 1m, ends before planned"},
		{banner, `00:00 start | 00:00:10 put`, "#1 a1 until 00:01, next 00:01: on timeout: retry 1 of 3 at once"},
	})
}

func TestTheAnchorOfAScheduleIsFixedOnce(t *testing.T) {
	const every5 = `"rrule":"FREQ=HOURLY;INTERVAL=5","policy":{}`
	s := tell(t, every5, "05:00 start | 05:10 success")
	s.expect("#0, next 10:00: planned")
	failIf(t, s.m.Dtstart != "2026-01-05T00:00:00", "dtstart %q, want midnight of the day of creation", s.m.Dtstart)

	// A save on another day keeps it, whatever else it changes
	s.then(`10:00+1 put "payload":{"size":2} | 10:00+1 start | 10:10+1 success`)
	s.expect("#0, next 11:00+1: planned")
	s.then(`10:20+1 put "rrule":"FREQ=HOURLY;INTERVAL=7"`)
	s.expect("#0, next 11:00+1: planned") // 35 hours after midnight of the first day
	failIf(t, s.m.Dtstart != "2026-01-05T00:00:00", "dtstart %q moved", s.m.Dtstart)

	// Only a save that names another moves it
	s.then(`10:30+1 put "dtstart":"2026-01-06T00:30:00"`)
	s.expect("#0, next 15:30+1: planned")
}

func TestAnImportWhoseStartIsEachDaysMidnightChangesNothing(t *testing.T) {
	const from = `"rrule":"DTSTART:202601%02dT000000Z\nRRULE:FREQ=%s","policy":{"retries":["3d"],"on_exhausted":"next_planned","alignment":"until_success"}`
	s := tell(t, fmt.Sprintf(from, 5, "DAILY;BYHOUR=6,16"), "06:00 start | 06:10 failure")
	failIf(t, s.m.Dtstart != "2026-01-05T00:00:00" || s.m.Timezone != "UTC", "got dtstart %q in %q", s.m.Dtstart, s.m.Timezone)
	s.then("01:00+1 put " + fmt.Sprintf(from, 6, "DAILY;BYHOUR=6,16"))
	s.expect("#1, next 06:10+3: retry 1 of 1 after 3d, in place of planned") // a change would have begun a new cycle
	failIf(t, s.m.Dtstart != "2026-01-05T00:00:00", "dtstart %q moved", s.m.Dtstart)

	// One that changes occurrences is a change
	s = tell(t, fmt.Sprintf(from, 5, "DAILY;INTERVAL=2;BYHOUR=6,16"), "06:00 start | 06:10 failure")
	s.then("01:00+1 put " + fmt.Sprintf(from, 6, "DAILY;INTERVAL=2;BYHOUR=6,16"))
	s.expect("#0, next 06:00+1: planned")
}

func TestEqualPayloadsAreEqualTexts(t *testing.T) {
	for text, want := range map[string]string{
		`null`: "{}", `{}`: "{}", `{ "b": [1, 2],  "a": {"d":1,"c":null} }`: `{"a":{"c":null,"d":1},"b":[1,2]}`,
		`{"n":12345678901234567890}`: `{"n":12345678901234567890}`, `{"html":"<&>"}`: `{"html":"<&>"}`,
	} {
		got, err := canonicalPayload(jsonOf(t, text))
		failIf(t, err != nil || got != want, "%s: %s, %v; want %s", text, got, err, want)
	}
	_, err := canonicalPayload(map[string]any{"n": math.Inf(1)})
	failIf(t, err == nil || err.Error() != "payload: expected values that JSON can hold, found json: unsupported value: +Inf", "found %v", err)
}

func TestASaveDoesNotTouchTheModelThatItIsDecidedOn(t *testing.T) {
	s := tell(t, daily, "06:00 start")
	before := s.m
	definition := Definition{UID: "tbl_1", Payload: `{"size":2}`, PolicyName: "fast", Refresh: RefreshNow}
	if _, outcome, err := s.m.Put(definition, policy.Policy{Timeout: time.Second}, true, clock("06:10")); err != nil || outcome != Applied {
		t.Fatal(outcome, err)
	}
	failIf(t, !reflect.DeepEqual(s.m, before), "\n got %+v\nwant %+v", s.m, before)
}
