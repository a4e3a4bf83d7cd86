package policy

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/document"
)

// ofTheDocument is the example of the issue: five minutes of overlap do no harm.
const ofTheDocument = "retry_at + timeout > planned_at + 5m ? planned_at : retry_at"

func aligned(t testing.TB, text string) *Aligner {
	t.Helper()
	aligner, err := parseAligner(map[string]any{"expr": text})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return aligner
}

func TestAnExpressionSaysWhenTheNextAttemptStarts(t *testing.T) {
	noon := time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{ // now is 12:00, planned 14:00, the retry would start 13:08, the timeout is 1h
		ofTheDocument: "14:00:00",
		"retry_at + timeout > planned_at + 10m ? planned_at : retry_at": "13:08:00",
		"now": "12:00:00",
		"planned_at - retry_at < 1h30m ? planned_at : retry_at":            "14:00:00",
		"now + 1d - 1w + 6d + 90s":                                         "12:01:30",
		`error_type == "5m" || reason == '1h' ? planned_at : retry_at`:     "14:00:00",
		"k > 2 ? planned_at : retry_at // not after 5m":                    "14:00:00",
		"let late = retry_at + timeout; late > planned_at ? now : late":    "12:00:00",
		"timeout == 1h ? planned_at - 500ms : now":                         "13:59:59.5",
		"error_type matches '^5m$' ? retry_at + duration('1m') : retry_at": "13:09:00",
	} {
		got, err := aligned(t, text).At(AlignInput{RetryAt: noon.Add(68 * time.Minute), PlannedAt: noon.Add(2 * time.Hour), Now: noon, Timeout: time.Hour, K: 3, ErrorType: "5m"})
		if at := got.Format("15:04:05.999"); err != nil || at != want {
			t.Errorf("%s: %s, %v, want %s", text, at, err, want)
		}
	}
}

func TestATimeThatIsNotToComeIsAnErrorOfThePolicy(t *testing.T) {
	now := time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"now - 1ms":          "expected a time from now to ten years on, found 2026-01-05T11:59:59Z",
		"now + 3650d + 1ms":  "expected a time from now to ten years on, found 2036-01-03T12:00:00Z",
		"[now, retry_at][k]": "index out of range: 7",
		`{"a": now}["b"]`:    "expected a time such as retry_at or planned_at, found <nil>",
	} {
		_, err := aligned(t, text).At(AlignInput{RetryAt: now, PlannedAt: now, Now: now, Timeout: time.Hour, K: 7})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestAnAlignmentHasTheLimitsOfADelay(t *testing.T) {
	for text, want := range map[string]string{
		"retry_at + 5":                "invalid operation: + (mismatched types time.Time and int)",
		"true":                        "expected struct, but got bool",
		"now()":                       "time.Time is not callable",
		"queue_depth > 1 ? now : now": "unknown name queue_depth",
		"now.Add(5m)":                 "methods are not allowed",
		"let f = [now][0].Format; f('1') == '' ? now : now": "methods are not allowed",
		"now + 5q": "",
		strings.Repeat("now == now ? ", 200) + "now": "",
	} {
		_, err := Parse(map[string]any{"alignment": map[string]any{"expr": text}})
		var refused *document.Error
		if !errors.As(err, &refused) || refused.Field != "alignment.expr" || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, want a refusal of alignment.expr with %s", text, err, want)
		}
	}
	for _, value := range []any{map[string]any{}, map[string]any{"expr": 7}, map[string]any{"expr": "now", "else": 1}} {
		if _, err := Parse(map[string]any{"alignment": value}); !strings.HasPrefix(refusedField(err), "alignment.") {
			t.Errorf("%v: %v", value, err)
		}
	}
}

func TestAnAlignmentByExpressionIsStoredAndWarnedOf(t *testing.T) {
	p := policyOf(t, `{"alignment":{"expr":"`+ofTheDocument+`"}}`)
	text, err := json.Marshal(p)
	const want = `{"timeout":"10m","retries":["0s","1m","5m"],"alignment":{"expr":"retry_at + timeout \u003e planned_at + 5m ? planned_at : retry_at"},"on_exhausted":"next_planned"}`
	if string(text) != want || err != nil {
		t.Errorf("got %s, %v", text, err)
	}
	if again, err := ParseStored(jsonOf(t, string(text))); err != nil || !again.Equal(p) || again.Alignment != AlignPlanned || again.AlignmentName() != "aligned by expression" {
		t.Errorf("became %+v, %v", again, err)
	}
	got := linted(t, fieldsOf{"timeout": "1m", "alignment": fieldsOf{"expr": "retry_at > planned_at ? now - 1h : now"}})
	if len(got) != 1 || !strings.HasPrefix(got[0], "alignment.expr: fails for a retry in 2h, planned in 1h: expected a time from now") {
		t.Errorf("warned of %q", got)
	}
}

func FuzzParseAligner(f *testing.F) {
	for _, text := range []string{ofTheDocument, "now + 1w", "'5m", "5m5m5m", "`5m`", "// 5m\nnow", "/* 5m", "retry_at.Add(5m)", "now - now + retry_at", "now.In(nil)", "99999999w + now"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		aligner, err := parseAligner(map[string]any{"expr": text})
		if err != nil {
			return
		}
		now := time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)
		at, err := aligner.At(AlignInput{RetryAt: now.Add(time.Minute), PlannedAt: now.Add(time.Hour), Now: now, Timeout: time.Minute, K: 1})
		if err == nil && (at.Before(now) || at.After(now.Add(document.MaxDuration)) || at.Nanosecond()%1e6 != 0) {
			t.Fatalf("%q: %v", text, at)
		}
	})
}
