package model

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// policyOf reads a policy that must be good.
func policyOf(t testing.TB, text string) policy.Policy {
	t.Helper()
	policy, err := policy.Parse(jsonOf(t, text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return policy
}

// refusedField is the field that an error names; "-" when it is no refusal.
func refusedField(err error) string {
	var refused *document.Error
	if !errors.As(err, &refused) {
		return "-"
	}
	return refused.Field
}

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
