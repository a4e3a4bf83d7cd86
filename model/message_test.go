package model

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/model/policy"
)

// wire is a message of the type about attempt a1 of model tbl_1, with further JSON fields.
func wire(kind, extra string) string {
	return objectOf([]string{`"type":"` + kind + `","big_table_uid":"tbl_1","refresh_attempt_uid":"a1"`, extra})
}

func ptr[T any](value T) *T { return &value }

func TestAMessageIsReadAsTheWireContractSays(t *testing.T) {
	for _, test := range []struct {
		raw  string
		want Message
	}{
		{wire("success", ""), Message{}},
		// success
		{wire("success", `"changed":false`), Message{Changed: ptr(false)}},

		// failure
		{wire("failure", ""), Message{}},
		{wire("failure", `"reason":"HTTP 503","error_type":"Unavailable","user_friendly_reason":"try later","retryable":true,"retry_after":60`),
			Message{Failure: policy.Failure{Reason: "HTTP 503", ErrorType: "Unavailable", UserFriendlyReason: "try later", Retryable: ptr(true), RetryAfter: time.Minute}}},
		{wire("failure", `"retry_after":"2026-01-05T07:00:00.0005+01:00"`), Message{RetryAt: clock("06:00")}},

		// user_friendly_status
		{wire("user_friendly_status", `"status":"50 rows","progress":50`), Message{Status: "50 rows", Progress: ptr(50)}},
		{wire("user_friendly_status", `"progress":"99.9"`), Message{Progress: ptr(99)}},
		{wire("user_friendly_status", `"status":"50 rows","progress":null`), Message{Status: "50 rows"}},
		{wire("user_friendly_status", `"progress":100`), Message{Progress: ptr(100)}},
		{wire("started", ""), Message{}},

		// started
		{wire("started", `"worker":"host-1","processing_id":7`), Message{Worker: "host-1"}},
		{wire("started", `"processing_id":7`), Message{Worker: "7"}},
		{wire("started", `"worker":null,"processing_id":null`), Message{}},

		// ready, and a success that follows
		{wire("ready", `"metrics":{"rows":0},"reply_to":"q:reply:n","progress":5`), Message{Metrics: map[string]float64{"rows": 0}, ReplyTo: "q:reply:n"}},
		{wire("ready", `"metrics":7`), Message{Ignored: []string{"metrics"}}},
		{wire("success", `"published":false`), Message{Unpublished: true}},
		{wire("success", `"published":true`), Message{}},
		{wire("success", `"published":"no"`), Message{Ignored: []string{"published"}}},

		// postponed, interrupted
		{wire("postponed", `"retry_after":"5 minutes"`), Message{Failure: policy.Failure{RetryAfter: 5 * time.Minute}}},
		{wire("interrupted", ""), Message{}},

		// What the type does not use is ignored, and so is what nobody knows
		{wire("success", `"reason":7,"progress":"half","worker":[],"v":2,"extra":{"deep":[1]}`), Message{}},
		{" \n" + wire("success", "") + "\n ", Message{}},
	} {
		got, err := Wire{}.DecodeMessage([]byte(test.raw))
		test.want.Type, test.want.UID, test.want.AttemptUID = got.Type, "tbl_1", "a1"
		diff := cmp.Diff(test.want, got, cmp.AllowUnexported(policy.Failure{}))
		failIf(t, diff != "" || err != nil || !strings.Contains(test.raw, `"`+string(got.Type)+`"`), "%s: %v, -want +got\n%s", test.raw, err, diff)
	}
}

// Bugs 1 and 2: the check compared a field that did not exist with one that was never sent.
func TestTheFenceHasTwoNamesAndOneValue(t *testing.T) {
	const head = `{"type":"success","big_table_uid":"tbl_1"`
	for _, raw := range []string{
		head + `,"refresh_attempt_uid":"a1"}`, head + `,"request_attempt_uid":"a1"}`, head + `,"refresh_attempt_uid":"a1","request_attempt_uid":"a1"}`,
		head + `,"refresh_attempt_uid":"a1","request_attempt_uid":""}`, head + `,"refresh_attempt_uid":null,"request_attempt_uid":"a1"}`,
	} {
		message, err := (Wire{}).DecodeMessage([]byte(raw))
		failIf(t, err != nil || message.AttemptUID != "a1", "%s: %q, %v", raw, message.AttemptUID, err)
	}
}

func TestAMessageThatCannotBeHandledIsFiledWithItsReason(t *testing.T) {
	const anObject, moreBehind = "expected a JSON object, found ", "expected one JSON object, found more behind it"
	const types = "success, failure, user_friendly_status, started, postponed, interrupted, ready"
	for _, test := range []struct{ raw, counter, reason string }{
		// Not one JSON object
		{``, CounterMalformed, anObject + `""`},
		{`garbage`, CounterMalformed, anObject + `"garbage"`},
		{`null`, CounterMalformed, anObject + `"null"`},
		{`{"type":"success"`, CounterMalformed, anObject + `"{\"type\":\"success\""`},
		{"\x00\xff", CounterMalformed, "expected a JSON object in UTF-8, found " + `"\x00\xff"`},
		{strings.Repeat("x", 61), CounterMalformed, anObject + `"` + strings.Repeat("x", 60) + `"…`},
		{wire("success", "") + wire("success", ""), CounterMalformed, moreBehind},

		// The type
		{wire("finished", ""), counterUnknownType, `type: expected ` + types + `, found "finished"`},
		{`{"type":7}`, CounterMalformed, "type: expected a text, found 7"},
		{`{"type":"success","refresh_attempt_uid":"a1"}`, counterNoUID, "big_table_uid: expected the uid of a model, found nothing"},

		// The uids
		{`{"type":"success","big_table_uid":"tbl_1"}`, counterNoUID, "refresh_attempt_uid: expected the uid of the attempt, found nothing"},
		{wire("success", `"refresh_attempt_uid":""`), counterNoUID, "refresh_attempt_uid: expected the uid of the attempt, found nothing"},
		{wire("success", `"request_attempt_uid":"a2"`), counterNoUID, "refresh_attempt_uid: expected the same uid as request_attempt_uid, found another"},
		{wire("success", `"refresh_attempt_uid":1`), CounterMalformed, "refresh_attempt_uid: expected a text, found 1"},
		{wire("success", `"request_attempt_uid":{}`), CounterMalformed, "request_attempt_uid: expected a text, found an object"},
		{wire("ready", `"reply_to":7`), CounterMalformed, "reply_to: expected a text, found 7"},
		{wire("success", `"big_table_uid":[]`), CounterMalformed, "big_table_uid: expected a text, found a list"},
	} {
		_, err := Wire{}.DecodeMessage([]byte(test.raw))
		var rejection *Rejection
		failIf(t, !errors.As(err, &rejection) || rejection.Counter != test.counter || err.Error() != test.reason,
			"%s:\n got %v %v\nwant %s %s", test.raw, rejection, err, test.counter, test.reason)
	}
}

func TestABadOptionalFieldIsNamedAndTheRestCounts(t *testing.T) {
	for _, test := range []struct {
		raw     string
		ignored string
		want    Message
	}{
		{wire("success", `"changed":"true"`), "changed", Message{}},
		{wire("failure", `"reason":{"code":503},"error_type":"Unavailable"`), "reason", Message{Failure: policy.Failure{ErrorType: "Unavailable"}}},
		{wire("failure", `"reason":404,"error_type":true,"user_friendly_reason":1e2,"retryable":0,"retry_after":[]`),
			"reason error_type user_friendly_reason retryable retry_after", Message{}},
		{wire("failure", `"reason":"HTTP 503","retry_after":"soon"`), "retry_after", Message{Failure: policy.Failure{Reason: "HTTP 503"}}},
		{wire("failure", `"retry_after":"-5m"`), "retry_after", Message{}},
		{wire("failure", `"retry_after":31536001`), "retry_after", Message{}},
		{wire("failure", `"retry_after":"NaN"`), "retry_after", Message{}},
		{wire("failure", `"retry_after":"NaN","retry_after_by":"server"`), "retry_after", Message{Failure: policy.Failure{ByServer: true}}},
		{wire("failure", `"retry_after":-1,"retry_after_by":"server"`), "retry_after", Message{Failure: policy.Failure{ByServer: true}}},
		{wire("failure", `"retry_after":1,"retry_after_by":"me"`), "retry_after_by", Message{Failure: policy.Failure{RetryAfter: time.Second}}},
		{wire("user_friendly_status", `"status":7,"progress":60`), "status", Message{Progress: ptr(60)}},
		{wire("user_friendly_status", `"status":"50 rows","progress":250`), "progress", Message{Status: "50 rows"}},
		{wire("user_friendly_status", `"progress":"NaN"`), "progress", Message{}},
		{wire("started", `"worker":7,"processing_id":"p-7"`), "worker", Message{Worker: "p-7"}},
		{wire("started", `"processing_id":true`), "processing_id", Message{}},
		{wire("postponed", ``), "retry_after", Message{}},
		{wire("postponed", `"retry_after":null`), "retry_after", Message{}},
	} {
		got, err := Wire{}.DecodeMessage([]byte(test.raw))
		test.want.Type, test.want.UID, test.want.AttemptUID, test.want.Ignored = got.Type, "tbl_1", "a1", strings.Fields(test.ignored)
		diff := cmp.Diff(test.want, got)
		failIf(t, diff != "" || err != nil, "%s: %v, -want +got\n%s", test.raw, err, diff)
	}
}

func TestAWishThatCannotBeUsedMovesNothingAndIsNamed(t *testing.T) {
	const atOnce = "#1, next 06:10: retry 1 of 6 at once, ends before planned"
	const later = "#0 deferred 1, next 06:"
	for steps, want := range map[string]string{
		`06:10 failure "retry_after":"Mon, 05 Jan 2026 06:40:00 GMT"`:   "#1, next 06:40: retry 1 of 6 after 30m, as the worker asked",
		`06:10 failure "retry_after":"Monday, 05-Jan-26 06:40:00 GMT"`:  "#1, next 06:40: retry 1 of 6 after 30m, as the worker asked",
		`06:10 failure "retry_after":"Mon Jan  5 06:40:00 2026"`:        "#1, next 06:40: retry 1 of 6 after 30m, as the worker asked",
		`06:10 failure "retry_after":"Mon, 05 Jan 2026 05:00:00 GMT"`:   atOnce,
		`06:10 failure "retry_after":"2027-01-05T06:10:00.001Z"`:        atOnce + " [retry_after]",
		`06:10 failure "retry_after":"9999-01-01T00:00:00Z","reason":7`: atOnce + " [reason retry_after]",
		`06:10 postponed "retry_after":"Mon, 05 Jan 2026 06:40:00 GMT"`: later + "40: postponed by the worker: again after 30m",
		`06:10 postponed "retry_after":"Mon, 05 Jan 2026 05:00:00 GMT"`: later + "10: postponed by the worker: again at once",
		`06:10 postponed "retry_after":"9999-01-01T00:00:00Z"`:          later + "15: postponed by the worker: again after 5m [retry_after]",
		`06:10 postponed "retry_after":"never"`:                         later + "15: postponed by the worker: again after 5m [retry_after]",
		`06:10 postponed "retry_after":"0001-01-01T00:00:00Z"`:          later + "15: postponed by the worker: again after 5m [retry_after]", // an unset time of Go
		`06:10 postponed`:                later + "15: postponed by the worker: again after 5m [retry_after]",
		`06:10 success "changed":"true"`: "#0, next 16:00: planned [changed]",
	} {
		s := tell(t, daily, "06:00 start | "+steps)
		got := s.String()
		if ignored := s.decision.Ended.Ignored; len(ignored) > 0 {
			got += fmt.Sprint(" ", ignored)
		}
		failIf(t, got != want, "%s:\n got %s\nwant %s", steps, got, want)
		counted := strings.Count(strings.Join(s.decision.Counters(QueueCircuit{}, monday), " "), counterIgnored)
		failIf(t, counted != len(s.decision.Ended.Ignored), "%s: counted %d fields, want %d", steps, counted, len(s.decision.Ended.Ignored))
	}
}

// Bugs 2, 14, 23, 37: a message about another attempt than the running one changes nothing, and is counted by its own name.
func TestOnlyTheCurrentAttemptCanChangeAModel(t *testing.T) {
	for _, test := range []struct {
		steps string
		want  Outcome
	}{
		// The model is idle
		{`05:00 success "refresh_attempt_uid":"a9"`, Stale}, {"06:00 start | 06:10 success | 06:10 success", Duplicate},
		{`06:00 start | 06:10 success | 06:10 user_friendly_status "status":"late"`, Duplicate},
		{"06:00 start | 06:10 interrupted | 06:10 interrupted", Duplicate},
		{"06:00 start | 07:00 timeout | 07:00 success", Duplicate}, {"06:00 start | 06:10 disable | 06:10 success", Stale},
		{`06:00 start | 06:10 run "force":true | 06:10 success`, Stale},
		{`06:00 start | 06:10 success | 16:00 start | 16:10 disable | 16:10 success "refresh_attempt_uid":"a1"`, Duplicate},

		// Another attempt runs
		{`06:00 start | 07:00 timeout | 07:00 start | 07:01 success "refresh_attempt_uid":"a1"`, Duplicate},
		{`06:00 start | 07:00 timeout | 07:00 start | 08:00 timeout | 08:01 start | 08:02 success "refresh_attempt_uid":"a1"`, Stale},
		{`06:00 start | 06:10 run "force":true | 06:10 start | 06:11 success "refresh_attempt_uid":"a1"`, Stale},
		{`06:00 start | 06:01 success "refresh_attempt_uid":"A1"`, Stale},
	} {
		cut := strings.LastIndex(test.steps, "|")
		s := tell(t, daily, test.steps[:max(0, cut)])
		before := s.m.State
		s.then(test.steps[cut+1:])
		failIf(t, s.outcome != test.want || s.m.State != before, "%s: outcome %q, want %q; state %s", test.steps, s.outcome, test.want, s)
	}
}

func TestAnAbsentUIDEqualsNoAbsentUID(t *testing.T) {
	m := Model{UID: "tbl_1"}
	_, outcome := m.Handle(Message{Type: MessageSuccess}, monday)
	failIf(t, outcome != Stale, "an idle model took a message without uid: %q", outcome)
}

func TestAStatusIsStoredForTheOwnerAndChangesNothingElse(t *testing.T) {
	s := tell(t, daily, "06:00 start")
	want := s.m.State
	s.then(`06:01 user_friendly_status "status":"half\nof it","progress":50.7`)
	want.UserFriendlyStatus, want.Progress = "half of it", 50
	failIf(t, s.m.State != want || s.decision.Event != EventStatus || s.decision.Ended != nil, "found %+v", s.decision)
	s.then(`06:02 user_friendly_status "progress":60 | 06:03 user_friendly_status "status":"more"`)
	failIf(t, s.m.UserFriendlyStatus != "more" || s.m.Progress != 60, "each message says what it says: %q, %d %%", s.m.UserFriendlyStatus, s.m.Progress)
}

func FuzzDecodeMessage(f *testing.F) {
	for _, extra := range []string{"", `"changed":true`, `"retry_after":"2026-01-05T06:00:00Z"`, `"retry_after":1e400`, `"progress":"0x1p3"`, `"retryable":null`} {
		for _, kind := range []string{"success", "failure", "user_friendly_status", "started", "postponed", "interrupted", "?"} {
			f.Add([]byte(wire(kind, extra)))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		message, err := Wire{}.DecodeMessage(raw)
		if err != nil {
			checkRejection(t, err)
			return
		}
		s := tell(t, daily, "06:00 start")
		message.AttemptUID = "a1"
		if s.decision, s.outcome = s.m.Handle(message, clock("06:10")); s.outcome != Applied {
			t.Fatalf("%s: outcome %q", raw, s.outcome)
		}
		s.apply()
		s.check(clock("06:10"))
	})
}

func checkRejection(t *testing.T, err error) {
	t.Helper()
	var rejection *Rejection
	stopIf(t, !errors.As(err, &rejection) || rejection.Counter == "" || rejection.Error() == "", "the error is %T %v", err, err)
	if !fit(rejection.Error(), 1000) {
		t.Fatalf("the reason is not fit to be shown: %q", rejection.Error())
	}
}
