package definitions

import (
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/policy"
)

func TestAPolicyThatSaysEmailAndNotToWhomIsWarnedOf(t *testing.T) {
	for text, want := range map[string]string{
		"Allow 1 hour.\nOn the first failure:\n- Email the customer that the refresh has been disabled": "p.txt line 3: notify: says e-mail, and not to whom",
		"Allow 1 hour. Email the owner when it recovers":                                                "p.txt line 1: notify: says e-mail, and not to whom",
		"Allow 1 hour. Notify the owner when it is disabled":                                            "",
		"Allow 1 hour. Email the customer at owner_email of the payload that the refresh is disabled":   "",
		"Allow 1 hour. Email the owner when it is disabled. Email the owner at the label owner":         "",
	} {
		docs, err := ReadPolicies("p.txt", strings.NewReader(text))
		if err != nil || len(docs) != 1 {
			t.Fatal(text, err)
		}
		p, err := policy.Parse(docs[0].Value)
		if err != nil {
			t.Fatal(text, err)
		}
		var told []string
		for _, w := range LintPolicy(docs[0], p, time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)) {
			told = append(told, docs[0].Position(w.Field)+": "+w.String())
		}
		if got := strings.Join(told, "; "); want == "" && got != "" || !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
