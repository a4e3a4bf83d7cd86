package model

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/policy"

	"github.com/google/go-cmp/cmp"
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
		// success
		{wire("success", ""), Message{}},
		{wire("success", `"changed":false`), Message{Changed: ptr(false)}},
		{wire("success", `"changed":true`), Message{Changed: ptr(true)}},

		// failure
		{wire("failure", ""), Message{}},
		{wire("failure", `"reason":"HTTP 503","error_type":"Unavailable","user_friendly_reason":"try later","retryable":true,"retry_after":60`),
			Message{Failure: policy.Failure{Reason: "HTTP 503", ErrorType: "Unavailable", UserFriendlyReason: "try later", Retryable: ptr(true), RetryAfter: time.Minute}}},
		{wire("failure", `"retry_after":"2026-01-05T07:00:00.0005+01:00"`), Message{RetryAt: clock("06:00")}},

		// user_friendly_status
		{wire("user_friendly_status", `"status":"50 rows","progress":50`), Message{Status: "50 rows", Progress: ptr(50)}},
		{wire("user_friendly_status", `"progress":"99.9"`), Message{Progress: ptr(99)}},
		{wire("user_friendly_status", `"status":"50 rows","progress":null`), Message{Status: "50 rows"}},
		{wire("user_friendly_status", `"progress":0`), Message{Progress: ptr(0)}},
		{wire("user_friendly_status", `"progress":100`), Message{Progress: ptr(100)}},

		// started
		{wire("started", ""), Message{}},
		{wire("started", `"worker":"host-1","processing_id":7`), Message{Worker: "host-1"}},
		{wire("started", `"processing_id":7`), Message{Worker: "7"}},
		{wire("started", `"processing_id":"p-7"`), Message{Worker: "p-7"}},
		{wire("started", `"worker":null,"processing_id":null`), Message{}},

		// postponed, interrupted
		{wire("postponed", `"retry_after":"5 minutes"`), Message{Failure: policy.Failure{RetryAfter: 5 * time.Minute}}},
		{wire("interrupted", ""), Message{}},

		// What the type does not use is ignored, and so is what nobody knows
		{wire("success", `"reason":7,"progress":"half","worker":[],"v":2,"extra":{"deep":[1]}`), Message{}},
		{" \n" + wire("success", "") + "\n ", Message{}},
	} {
		got, err := DecodeMessage([]byte(test.raw))
		test.want.Type, test.want.UID, test.want.AttemptUID = got.Type, "tbl_1", "a1"
		if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(policy.Failure{})); diff != "" || err != nil || !strings.Contains(test.raw, `"`+string(got.Type)+`"`) {
			t.Errorf("%s: %v, -want +got\n%s", test.raw, err, diff)
		}
	}
}

// Bugs 1 and 2: the check compared a field that did not exist with one that was never sent.
func TestTheFenceHasTwoNamesAndOneValue(t *testing.T) {
	const head = `{"type":"success","big_table_uid":"tbl_1"`
	for _, raw := range []string{
		head + `,"refresh_attempt_uid":"a1"}`, head + `,"request_attempt_uid":"a1"}`, head + `,"refresh_attempt_uid":"a1","request_attempt_uid":"a1"}`,
		head + `,"refresh_attempt_uid":"a1","request_attempt_uid":""}`, head + `,"refresh_attempt_uid":null,"request_attempt_uid":"a1"}`,
	} {
		if message, err := DecodeMessage([]byte(raw)); err != nil || message.AttemptUID != "a1" {
			t.Errorf("%s: %q, %v", raw, message.AttemptUID, err)
		}
	}
}

func TestAMessageThatCannotBeHandledIsFiledWithItsReason(t *testing.T) {
	const anObject, moreBehind = "expected a JSON object, found ", "expected one JSON object, found more behind it"
	const types = "success, failure, user_friendly_status, started, postponed, interrupted"
	const until = "seconds, a duration or an RFC 3339 time, at most a year"
	for _, test := range []struct{ raw, counter, reason string }{
		// Not one JSON object
		{``, CounterMalformed, anObject + `""`},
		{`garbage`, CounterMalformed, anObject + `"garbage"`},
		{`null`, CounterMalformed, anObject + `"null"`},
		{`[]`, CounterMalformed, anObject + `"[]"`},
		{`"text"`, CounterMalformed, anObject + `"\"text\""`},
		{`{"type":"success"`, CounterMalformed, anObject + `"{\"type\":\"success\""`},
		{"\x00\xff", CounterMalformed, "expected a JSON object in UTF-8, found " + `"\x00\xff"`},
		{strings.Repeat("x", 61), CounterMalformed, anObject + `"` + strings.Repeat("x", 60) + `"…`},
		{wire("success", "") + wire("success", ""), CounterMalformed, moreBehind},
		{wire("success", "") + "x", CounterMalformed, moreBehind},

		// The type
		{wire("", ""), CounterUnknownType, `type: expected ` + types + `, found ""`},
		{wire("finished", ""), CounterUnknownType, `type: expected ` + types + `, found "finished"`},
		{wire("Success", ""), CounterUnknownType, `type: expected ` + types + `, found "Success"`},
		{`{"type":7}`, CounterMalformed, "type: expected a text, found 7"},

		// The uids
		{`{"type":"success","refresh_attempt_uid":"a1"}`, CounterNoUID, "big_table_uid: expected the uid of a model, found nothing"},
		{`{"type":"success","big_table_uid":"tbl_1"}`, CounterNoUID, "refresh_attempt_uid: expected the uid of the attempt, found nothing"},
		{wire("success", `"refresh_attempt_uid":""`), CounterNoUID, "refresh_attempt_uid: expected the uid of the attempt, found nothing"},
		{wire("success", `"refresh_attempt_uid":null`), CounterNoUID, "refresh_attempt_uid: expected the uid of the attempt, found nothing"},
		{wire("success", `"request_attempt_uid":"a2"`), CounterNoUID, "refresh_attempt_uid: expected the same uid as request_attempt_uid, found another"},
		{wire("success", `"refresh_attempt_uid":1`), CounterMalformed, "refresh_attempt_uid: expected a text, found 1"},
		{wire("success", `"request_attempt_uid":{}`), CounterMalformed, "request_attempt_uid: expected a text, found an object"},
		{wire("success", `"big_table_uid":[]`), CounterMalformed, "big_table_uid: expected a text, found a list"},

		// The fields of each type
		{wire("success", `"changed":"no"`), CounterMalformed, `changed: expected true or false, found "no"`},
		{wire("failure", `"reason":404`), CounterMalformed, "reason: expected a text, found 404"},
		{wire("failure", `"error_type":true`), CounterMalformed, "error_type: expected a text, found true"},
		{wire("failure", `"user_friendly_reason":1e2`), CounterMalformed, "user_friendly_reason: expected a text, found 1e2"},
		{wire("failure", `"retryable":0`), CounterMalformed, "retryable: expected true or false, found 0"},
		{wire("failure", `"retry_after":[]`), CounterMalformed, "retry_after: expected a text or a number, found a list"},
		{wire("failure", `"retry_after":"soon"`), CounterMalformed, "retry_after: expected " + until + `, found "soon"`},
		{wire("failure", `"retry_after":-1`), CounterMalformed, "retry_after: expected " + until + `, found "-1"`},
		{wire("failure", `"retry_after":31536001`), CounterMalformed, "retry_after: expected " + until + `, found "31536001"`},
		{wire("failure", `"retry_after":"366d"`), CounterMalformed, "retry_after: expected " + until + `, found "366d"`},
		{wire("failure", `"retry_after":"NaN"`), CounterMalformed, "retry_after: expected " + until + `, found "NaN"`},
		{wire("user_friendly_status", `"status":7`), CounterMalformed, "status: expected a text, found 7"},
		{wire("user_friendly_status", `"progress":101`), CounterMalformed, `progress: expected a number from 0 to 100, found "101"`},
		{wire("user_friendly_status", `"progress":-1`), CounterMalformed, `progress: expected a number from 0 to 100, found "-1"`},
		{wire("user_friendly_status", `"progress":"NaN"`), CounterMalformed, `progress: expected a number from 0 to 100, found "NaN"`},
		{wire("user_friendly_status", `"progress":"half"`), CounterMalformed, `progress: expected a number from 0 to 100, found "half"`},
		{wire("user_friendly_status", `"progress":true`), CounterMalformed, "progress: expected a text or a number, found true"},
		{wire("started", `"worker":7`), CounterMalformed, "worker: expected a text, found 7"},
		{wire("started", `"processing_id":true`), CounterMalformed, "processing_id: expected a text or a number, found true"},
		{wire("postponed", ``), CounterMalformed, "retry_after: expected seconds, a duration or an RFC 3339 time, found nothing"},
		{wire("postponed", `"retry_after":null`), CounterMalformed, "retry_after: expected seconds, a duration or an RFC 3339 time, found nothing"},
		{wire("postponed", `"retry_after":"never"`), CounterMalformed, "retry_after: expected " + until + `, found "never"`},

		// A long number is not repeated as a whole
		{wire("failure", `"reason":`+strings.Repeat("9", 100)), CounterMalformed, "reason: expected a text, found " + strings.Repeat("9", 57) + "…"},
	} {
		_, err := DecodeMessage([]byte(test.raw))
		var rejection *Rejection
		if !errors.As(err, &rejection) || rejection.Counter != test.counter || err.Error() != test.reason {
			t.Errorf("%s:\n got %v %v\nwant %s %s", test.raw, rejection, err, test.counter, test.reason)
		}
	}
}

// Bugs 2, 14, 23, 37: what is not about the running attempt changes nothing, and is counted by its own name.
func TestOnlyTheCurrentAttemptCanChangeAModel(t *testing.T) {
	for _, test := range []struct {
		steps string
		want  Outcome
	}{
		// The model is idle
		{`05:00 success "refresh_attempt_uid":"a9"`, Stale},
		{`05:00 failure "refresh_attempt_uid":"a9"`, Stale},
		{"06:00 start | 06:10 success | 06:10 success", Duplicate},
		{"06:00 start | 06:10 success | 06:10 failure", Duplicate},
		{"06:00 start | 06:10 failure | 06:10 failure", Duplicate},
		{`06:00 start | 06:10 success | 06:10 user_friendly_status "status":"late"`, Duplicate},
		{"06:00 start | 06:10 success | 06:10 started", Duplicate},
		{"06:00 start | 06:10 interrupted | 06:10 interrupted", Duplicate},
		{"06:00 start | 07:00 timeout | 07:00 success", Duplicate},
		{"06:00 start | 06:10 disable | 06:10 success", Duplicate},

		// Another attempt runs
		{`06:00 start | 07:00 timeout | 07:00 start | 07:01 success "refresh_attempt_uid":"a1"`, Duplicate},
		{`06:00 start | 07:00 timeout | 07:00 start | 08:00 timeout | 08:01 start | 08:02 success "refresh_attempt_uid":"a1"`, Stale},
		{`06:00 start | 06:10 run "force":true | 06:10 start | 06:11 success "refresh_attempt_uid":"a1"`, Duplicate},
		{`06:00 start | 06:01 success "refresh_attempt_uid":"A1"`, Stale},
		{`06:00 start | 06:01 success "refresh_attempt_uid":"a1 "`, Stale},
	} {
		cut := strings.LastIndex(test.steps, "|")
		s := tell(t, daily, test.steps[:max(0, cut)])
		before := s.m.State
		s.then(test.steps[cut+1:])
		if s.outcome != test.want || s.m.State != before {
			t.Errorf("%s: outcome %q, want %q; state %s", test.steps, s.outcome, test.want, s)
		}
	}
}

func TestAnAbsentUIDEqualsNoAbsentUID(t *testing.T) {
	m := Model{UID: "tbl_1"}
	if _, outcome := m.Handle(Message{Type: MessageSuccess}, monday); outcome != Stale {
		t.Errorf("an idle model took a message without uid: %q", outcome)
	}
}

func TestAStatusIsStoredForTheOwnerAndChangesNothingElse(t *testing.T) {
	s := tell(t, daily, "06:00 start")
	want := s.m.State
	s.then(`06:01 user_friendly_status "status":"half\nof it","progress":50.7`)
	want.UserFriendlyStatus, want.Progress = "half of it", 50
	if s.m.State != want || s.decision.Event != EventStatus || s.decision.Ended != nil {
		t.Errorf("found %+v", s.decision)
	}
	s.then(`06:02 user_friendly_status "progress":60 | 06:03 user_friendly_status "status":"more"`)
	if s.m.UserFriendlyStatus != "more" || s.m.Progress != 60 {
		t.Errorf("each message says what it says: %q, %d %%", s.m.UserFriendlyStatus, s.m.Progress)
	}
}

func FuzzDecodeMessage(f *testing.F) {
	for _, extra := range []string{"", `"changed":true`, `"retry_after":"2026-01-05T06:00:00Z"`, `"retry_after":1e400`, `"progress":"0x1p3"`, `"retryable":null`} {
		for _, kind := range []string{"success", "failure", "user_friendly_status", "started", "postponed", "interrupted", "?"} {
			f.Add([]byte(wire(kind, extra)))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		message, err := DecodeMessage(raw)
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
	if !errors.As(err, &rejection) || rejection.Counter == "" || rejection.Error() == "" {
		t.Fatalf("the error is %T %v", err, err)
	}
	if !fit(rejection.Error(), 1000) {
		t.Fatalf("the reason is not fit to be shown: %q", rejection.Error())
	}
}
