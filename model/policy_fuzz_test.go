package model

import (
	"os"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

// FuzzPolicyDecides: whatever policy is accepted, a model can live under it.
func FuzzPolicyDecides(f *testing.F) {
	seeds, err := os.ReadFile("policy/testdata/policies.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for text := range strings.Lines(string(seeds)) {
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
		if p, err := policy.Parse(doc.Fields); err == nil {
			decides(t, text, p)
		}
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
