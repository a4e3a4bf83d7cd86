package policy

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/document"
)

// FuzzParse: a refusal names a field, and an accepted policy is read back from its canonical text.
func FuzzParse(f *testing.F) {
	seeds, err := os.ReadFile("testdata/policies.jsonl")
	must(f, err)
	for text := range strings.Lines(string(seeds)) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var value any
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		if len(text) > 4096 || decoder.Decode(&value) != nil {
			return
		}
		p, err := Parse(value)
		if err != nil {
			var refused *document.Error
			stopIf(t, !errors.As(err, &refused) || refused.Want == "", "%s: %v", text, err)
			return
		}
		again, err := ParseStored(jsonOf(t, p.canonical()))
		stopIf(t, err != nil || again.canonical() != p.canonical() || !again.Equal(p),
			"%s\n became %s\n    then %s, %v", text, p.canonical(), again.canonical(), err)
	})
}

// FuzzParseExpression: an accepted expression evaluates to a delay in range, to no retry or to an error, and never panics.
func FuzzParseExpression(f *testing.F) {
	for _, text := range append([]string{
		"10 * k", "k <= 5 ? min(2 ** (k - 1), 10) : false", "[0, 60][k]", "k % 0", "'next'", "let n = k; n * 60", "if k > 3 { false } else { '1m' }",
		"reason matches \"^a\" ? 1 : 2", "error_type in ['a'] ? \"1h\" : nil", "seconds_since_success / queue_depth", "{'a': k}.a", "$env.k", "k ?? 1", "-k", "not true", "1..9",
	}, nasty...) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		expression, err := parseExpression(text)
		if err != nil {
			stopIf(t, !errors.As(err, new(*document.Error)), "%q: %v", text, err)
			return
		}
		for k := 1; k <= 30; k++ {
			delay, retry, err := expression.Delay(RetryInput{K: k, Reason: "boom", ErrorType: "A", QueueDepth: 7, SinceSuccess: time.Duration(k) * time.Hour})
			inRange := delay >= 0 && delay <= document.MaxDuration && delay%time.Millisecond == 0
			stopIf(t, err != nil && (retry || delay != 0 || err.Error() == "") || retry && !inRange && delay != UntilPlanned,
				"%q after %d failures: %v, %v, %v", text, k, delay, retry, err)
		}
	})
}
