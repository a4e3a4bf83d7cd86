package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestNumbersAndTextsOfAllDecodersAreScalars(t *testing.T) {
	for _, test := range []struct {
		value any
		want  string
		ok    bool
	}{
		{nil, "0", true}, {"5m", "5m", true}, {"", "", true}, {json.Number("1.50"), "1.50", true},
		{7, "7", true}, {int64(-7), "-7", true}, {uint64(1 << 63), "9223372036854775808", true}, {0.5, "0.5", true}, {3e8, "300000000", true},
		{true, "", false}, {[]any{}, "", false}, {map[string]any{}, "", false},
	} {
		if got, ok := ScalarText(test.value); got != test.want || ok != test.ok {
			t.Errorf("%v: %q, %v; want %q, %v", test.value, got, ok, test.want, test.ok)
		}
	}
}

func TestARefusalSaysWhereWhatAndWhatInstead(t *testing.T) {
	refused := &Error{"retries[2]", "a delay", `"x"`}
	whole := &Error{"", "an object", "a list"}
	item := &Error{"[1]", "a delay", `"x"`}
	for got, want := range map[string]string{
		refused.Error(): `retries[2]: expected a delay, found "x"`, whole.Error(): "expected an object, found a list",
		refused.At("policy").Error(): `policy.retries[2]: expected a delay, found "x"`, whole.At("policy").Error(): "policy: expected an object, found a list",
		item.At("retries").Error(): `retries[1]: expected a delay, found "x"`, refused.Error() + " ": `retries[2]: expected a delay, found "x" `,
	} {
		if got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
	}
}

func TestARefusedValueIsRepeatedShortAndHarmless(t *testing.T) {
	for _, test := range []struct {
		value any
		want  string
	}{
		{nil, "nothing"}, {"x", `"x"`}, {"", `""`}, {"a\nb\x1b", `"a\nb\x1b"`}, {map[string]any{"a": 1}, "an object"}, {[]any{1}, "a list"},
		{7, "7"}, {true, "true"}, {1.5, "1.5"}, {json.Number("1e400"), "1e400"},
		{strings.Repeat("x", 60), `"` + strings.Repeat("x", 60) + `"`}, {strings.Repeat("x", 61), `"` + strings.Repeat("x", 60) + `"…`},
		{json.Number(strings.Repeat("9", 1000)), strings.Repeat("9", 57) + "…"},
	} {
		if got := Found(test.value); got != test.want {
			t.Errorf("%v: %s, want %s", test.value, got, test.want)
		}
	}
}

func TestADurationThatIsRefusedIsPlacedInItsDocument(t *testing.T) {
	_, err := DurationAt("timeout", "soon")
	if field := (*Error)(nil); !errors.As(err, &field) || field.Field != "timeout" {
		t.Errorf("found %v", err)
	}
}

func TestAFieldIsReadAsItsKindOrRefused(t *testing.T) {
	doc := Object{map[string]any{"flag": true, "n": json.Number("3"), "words": []any{"a", "b"}, "one": "a", "odd": []any{1}}}
	read := func(value any, err error) any {
		if err != nil {
			return err.Error()
		}
		return value
	}
	number := func(n int, found bool, err error) any { return read([]any{n, found}, err) }
	for want, got := range map[any]any{
		"[3 true]":  number(doc.Int("n", 1, 3)),
		"[0 false]": number(doc.Int("none", 1, 3)),
		"n: expected a whole number from 1 to 2, found 3": number(doc.Int("n", 1, 2)),
		"[a b]":                            read(doc.Words("words")),
		"[a]":                              read(doc.Words("one")),
		"odd[0]: expected a text, found 1": read(doc.Words("odd")),
		"flag: expected a list of texts, found true": read(doc.Words("flag")),
		"fallback":                                      read(doc.OneOf("none", "fallback", "x")),
		`one: expected x or y, found "a"`:               read(doc.OneOf("one", "", "x", "y")),
		"n: expected true or false, found 3":            read(doc.Flag("n")),
		"odd: expected a text, found a list":            read(doc.Text("odd")),
		"flag: expected a text or a number, found true": read(doc.Length("flag", 0)),
	} {
		if fmt.Sprint(got) != want {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}
