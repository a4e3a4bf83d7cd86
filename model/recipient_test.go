package model

import (
	"strings"
	"testing"

	"github.com/refreshd/refreshd/model/policy"
)

func TestAnAddressComesFromThePayloadALabelOrThePolicyAndIsNothingButAnAddress(t *testing.T) {
	m := Model{Labels: map[string]string{"owner": "label@example.com", "team": "t1"}}
	for value, want := range map[string]string{
		"ann@example.com": "ann@example.com", " ann+x@mail.example.com ": "ann+x@mail.example.com",
		"": "", "ann": "", "Ann <ann@example.com>": "", "a@b, c@d": "", `a@b\r\nBcc: c@d`: "", `a@b\u0000`: "", `\"a b\"@c.d`: "", "a@b\u2028c": "", "ä@example.com": "",
		strings.Repeat("a", 251) + "@b.c": "",
	} {
		m.Payload = `{"mail":"` + value + `"}`
		if got := m.AddressOf(policy.Recipient{Payload: "mail"}); got != want {
			t.Errorf("%q: got %q, want %q", value, got, want)
		}
	}
	for _, payload := range []string{"", "[]", `{"mail":1}`, `{"mail":["a@b.c"]}`} {
		m.Payload = payload
		if got := m.AddressOf(policy.Recipient{Payload: "mail"}); got != "" {
			t.Errorf("%s: got %q", payload, got)
		}
	}
	for to, want := range map[policy.Recipient]string{
		{Label: "owner"}: "label@example.com", {Label: "team"}: "", {Label: "none"}: "", {Address: "ops@example.com"}: "ops@example.com", {}: "",
	} {
		if got := m.AddressOf(to); got != want {
			t.Errorf("%+v: got %q, want %q", to, got, want)
		}
	}
}
