package model

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

// FuzzParsePolicy: what is refused is refused with a field, and what is accepted is read back from its canonical text.
func FuzzParsePolicy(f *testing.F) {
	for _, text := range []string{
		`{}`, `null`, `[]`, `"10 5s 10m"`, `{"timeout":"none","retries":["0s",60,"next",null]}`, chronosCanonical,
		`{"name":"n","rrule":"FREQ=DAILY;BYHOUR=6","timezone":"Europe/Berlin","dtstart":"2026-01-01","queue_timeout":"10m"}`,
		`{"rrule":"every 2 hours","jitter":"0x1p-2"}`, `{"rrule":"30 6 * * 1-5"}`, `{"retries":"10 5s 10m","jitter":1}`, `{"retries":{"strategy":"exponential","factor":1.5,"cap":"1h","count":3}}`,
		`{"retries":{"strategy":""}}`, `{"retries":{"by_age":["1d: 5m",{"up_to":"7d","delay":"next"}]}}`, `{"retries":{"expr":"k < 5 ? '10m' : false"}}`,
		`{"retry_on":[],"delays_by_error":{"A":"never","B":"next","C":0}}`, `{"never_retry":["permanent","timeout"]}`, `{"never_retry":"\u0000"}`,
		`{"retry_window":"FREQ=DAILY;BYHOUR=9,10"}`, `{"misfire":{"run_if_younger_than":"1h"}}`, `{"misfire":"run_if_younger_than 1m"}`, `{"notify":[]}`, `{"notify":["recovered","recovered"]}`,
		`{"maxRetries":5,"retryDelay":30000,"useExponentialBackoff":true,"jitterEnabled":false}`, `{"disabled_reason":"<b>\u2028"}`, `{"jitter":-0.0}`, `{"jitter":1e-400}`,
		`{"spread":"3650d","give_up_after":1e3,"alignment":"between_planned","on_exhausted":"give_up"}`, `{"timeout":"P3650D","retries":["3650d"],"retries":[]}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4096 {
			return
		}
		doc, err := decodeObject([]byte(text))
		if err != nil {
			return
		}
		p, err := policy.Parse(doc.Fields)
		if err != nil {
			var refused *document.Error
			if !errors.As(err, &refused) || refused.Want == "" {
				t.Fatalf("%s: %v", text, err)
			}
			return
		}
		canonical, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		again, err := policy.Parse(jsonOf(t, string(canonical)))
		second, _ := json.Marshal(again)
		if err != nil || string(second) != string(canonical) || !again.Equal(p) {
			t.Fatalf("%s\n became %s\n    then %s, %v", text, canonical, second, err)
		}
		decides(t, text, p)
	})
}

// decides lets a model live under a policy for a few failures: none panics, and each is followed by something.
func decides(t *testing.T, text string, p policy.Policy) {
	m := Model{UID: "tbl_1"}
	if err := m.Resolve(p, schedule.Parse); err != nil {
		t.Fatalf("%s was accepted, but %v", text, err)
	}
	now := monday
	for range 5 {
		m.State = m.Start(now, "a").Next
		decision := m.Fail(policy.Failure{ErrorType: "A", Reason: "boom"}, now)
		m.State = decision.Next
		if !m.Disabled && m.RefreshAt.Before(now) || m.Disabled != decision.Final {
			t.Fatalf("%s: %+v", text, m.State)
		}
		if m.Disabled || m.RefreshAt.Year() > 2200 {
			return
		}
		now = m.RefreshAt
	}
}

// FuzzParseExpression: what is accepted evaluates to a delay in range, to no retry or to an error, and never panics.
func FuzzParseExpression(f *testing.F) {
	for _, text := range append([]string{
		"10 * k", "k <= 5 ? min(2 ** (k - 1), 10) : false", "[0, 60][k]", "k % 0", "'next'", "let n = k; n * 60", "if k > 3 { false } else { '1m' }",
		"reason matches \"^a\" ? 1 : 2", "error_type in ['a'] ? \"1h\" : nil", "seconds_since_success / queue_depth", "{'a': k}.a", "$env.k", "k ?? 1", "-k", "not true", "1..9",
	}, nasty...) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		expression, err := policy.ParseExpression(text)
		if err != nil {
			if !errors.As(err, new(*document.Error)) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		for k := 1; k <= 30; k++ {
			delay, retry, err := expression.Delay(policy.Occasion{K: k, Reason: "boom", ErrorType: "A", QueueDepth: 7, SinceSuccess: time.Duration(k) * time.Hour})
			inRange := delay >= 0 && delay <= document.MaxDuration && delay%time.Millisecond == 0
			if err != nil && (retry || delay != 0 || err.Error() == "") || retry && !inRange && delay != policy.UntilPlanned {
				t.Fatalf("%q after %d failures: %v, %v, %v", text, k, delay, retry, err)
			}
		}
	})
}
