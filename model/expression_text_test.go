package model

import (
	"errors"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

func TestAnExpressionWithControlCharactersIsRefusedButMayNameThem(t *testing.T) {
	for _, r := range []string{"\x00", "\x07", "\x1b", "\x7f", "\u009b", "\u202e", "\u2028", "\u2066"} {
		_, err := policy.ParseExpression(`reason == "` + r + `" ? 1 : false`)
		if refused := (*document.Error)(nil); !errors.As(err, &refused) || !strings.HasPrefix(refused.Want, "an expression without control characters") {
			t.Errorf("%q: expected a refusal, found %v", r, err)
		}
	}
	for _, text := range []string{`reason == "\u001b" ? 1 : false`, "k < 3\n\t? 1\r\n\t: false", `reason == "größer 🙂" ? 1 : false`} {
		if _, err := policy.ParseExpression(text); err != nil {
			t.Errorf("%q: expected an expression, found %v", text, err)
		}
	}
}
