package policy

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// sized is a policy whose canonical JSON has so many bytes.
func sized(t *testing.T, bytes int) map[string]any {
	t.Helper()
	var names []any
	for i := range 177 {
		names = append(names, fmt.Sprintf("%03d%s", i, strings.Repeat("x", 85)))
	}
	doc := map[string]any{"retries": []any{}, "never_retry": names, "disabled_reason": "x"}
	text, err := json.Marshal(policyOfValue(t, doc))
	if err != nil {
		t.Fatal(err)
	}
	doc["disabled_reason"] = "x" + strings.Repeat("x", bytes-len(text))
	return doc
}

func policyOfValue(t *testing.T, value any) Policy {
	t.Helper()
	p, err := ParseStored(value)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAPolicyIsAtMost16KiBUnlessItIsStoredAlready(t *testing.T) {
	if _, err := Parse(sized(t, maxPolicyBytes)); err != nil {
		t.Errorf("expected the largest policy to be read, found %v", err)
	}
	large := sized(t, maxPolicyBytes+1)
	const want = "expected at most 16384 bytes of JSON, found 16385"
	if _, err := Parse(large); err == nil || err.Error() != want {
		t.Errorf("expected %q, found %v", want, err)
	}
	if _, err := ParseStored(large); err != nil {
		t.Errorf("expected a stored policy to stay readable, found %v", err)
	}
	p := policyOfValue(t, large)
	if err := p.CheckSize(); err == nil || err.Error() != want {
		t.Errorf("expected %q, found %v", want, err)
	}
}
