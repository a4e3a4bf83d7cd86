package policy

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/model/document"
)

// policyOf reads a policy that must be good.
func policyOf(t testing.TB, text string) Policy {
	t.Helper()
	p, err := Parse(jsonOf(t, text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return p
}

// jsonOf decodes JSON as a control message is decoded: numbers stay as they are written.
func jsonOf(t testing.TB, text string) any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value
}

// refusals checks what bad policies are refused with.
func refusals(t *testing.T, wants map[string]string) {
	t.Helper()
	for text, want := range wants {
		if _, err := Parse(jsonOf(t, text)); err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
}

// refusedField is the field that an error names; "-" when it is no refusal.
func refusedField(err error) string {
	var refused *document.Error
	if !errors.As(err, &refused) {
		return "-"
	}
	return refused.Field
}

// wantDuration is what a refused duration is told to be.
const wantDuration = `a duration such as "90s", "1h30m", "PT5M" or "10 minutes"`

// delaysOf asks a policy for the delays after the failures from 1 to n; "-" where there is no retry.
func delaysOf(t testing.TB, p Policy, n int) string {
	t.Helper()
	var texts []string
	for k := range n {
		delay, retry, err := p.Retries.Delay(RetryInput{K: k + 1})
		switch {
		case err != nil:
			t.Fatal(err)
		case !retry:
			texts = append(texts, "-")
		default:
			texts = append(texts, formatDelay(delay))
		}
	}
	return strings.Join(texts, " ")
}
