package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
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
	refused := Refuse("retries[2]", "a delay", `"x"`)
	whole := Refuse("", "an object", "a list")
	item := Refuse("[1]", "a delay", `"x"`)
	for got, want := range map[string]string{
		refused.Error(): `retries[2]: expected a delay, found "x"`, whole.Error(): "expected an object, found a list",
		refused.At("policy").Error(): `policy.retries[2]: expected a delay, found "x"`, whole.At("policy").Error(): "policy: expected an object, found a list",
		item.At("retries").Error(): `retries[1]: expected a delay, found "x"`, refused.Error() + " ": `retries[2]: expected a delay, found "x" `,
	} {
		failIf(t, got != want, "\n got %s\nwant %s", got, want)
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
		got := Found(test.value)
		failIf(t, got != test.want, "%v: %s, want %s", test.value, got, test.want)
	}
}

func TestADurationThatIsRefusedIsPlacedInItsDocument(t *testing.T) {
	_, err := DurationAt("timeout", "soon")
	field := (*Error)(nil)
	failIf(t, !errors.As(err, &field) || field.Field != "timeout", "found %v", err)
}

func TestAFieldIsReadAsItsKindOrRefused(t *testing.T) {
	fields := map[string]any{"flag": true, "n": json.Number("3"), "words": []any{"a", "b"}, "one": "a", "odd": []any{1}}
	read := func(field func(doc *Reader) any) any {
		doc := Read(fields, "flag", "n", "words", "one", "odd")
		value := field(doc)
		if doc.Refuse("late", "nothing behind the first", "it"); doc.Err().Error() != "late: expected nothing behind the first, found it" {
			return doc.Err()
		}
		return value
	}
	number := func(n float64, found bool) any { return []any{n, found} }
	for want, got := range map[any]any{
		"3": read(func(doc *Reader) any { return doc.Int("n", 1, 3) }), "0": read(func(doc *Reader) any { return doc.Int("none", 1, 3) }),
		"[3 true]":  read(func(doc *Reader) any { return number(doc.Number("n", 1, 3)) }),
		"[0 false]": read(func(doc *Reader) any { return number(doc.Number("none", 1, 3)) }),
		"n: expected a whole number from 1 to 2, found 3": read(func(doc *Reader) any { return doc.Int("n", 1, 2) }),
		"[a b]":                            read(func(doc *Reader) any { return doc.Words("words") }),
		"[a]":                              read(func(doc *Reader) any { return doc.Words("one") }),
		"[]":                               read(func(doc *Reader) any { return doc.Words("none") }),
		"odd[0]: expected a text, found 1": read(func(doc *Reader) any { return doc.Words("odd") }),
		"flag: expected a list of texts, found true": read(func(doc *Reader) any { return doc.Words("flag") }),
		"fallback":                                      read(func(doc *Reader) any { return doc.OneOf("none", "fallback", "x") }),
		`one: expected x or y, found "a"`:               read(func(doc *Reader) any { return doc.OneOf("one", "", "x", "y") }),
		"n: expected true or false, found 3":            read(func(doc *Reader) any { return doc.Flag("n") }),
		"odd: expected a text, found a list":            read(func(doc *Reader) any { return doc.Text("odd") }),
		"flag: expected a text or a number, found true": read(func(doc *Reader) any { return doc.Length("flag", 0) }),
		"n: expected a duration from 1s to 2s, found 3": read(func(doc *Reader) any { return doc.LengthWithin("n", time.Second, 2*time.Second) }),
		"expected an object with n, found nothing":      Read(nil, "n").Err(),
	} {
		failIf(t, fmt.Sprint(got) != want, "got %v, want %v", got, want)
	}
}

func TestOutsideTextIsMadeFitToBeShown(t *testing.T) {
	for _, test := range []struct {
		text, want string
		limit      int
	}{
		{"", "", 10}, {"plain", "plain", 10}, {"0123456789", "0123456789", 10}, {" \t padded \n", "padded", 20},

		// Too long: cut between characters, and marked
		{"0123456789a", "0123456…", 10}, {"öööööö", "ööö…", 10}, {"ööööö", "ööööö", 10}, {"x日本日本", "x日本…", 10}, {"😀😀😀", "😀…", 10},

		// One line, no control characters, nothing that turns the direction
		{"a\nb\r\nc\x00d\x1b[31me\x7ff", "a b  c d [31me f", 40}, {"a\u0085b\u2028c\u2029d", "a b c d", 40}, {"a\u202eb\u2066c", "a b c", 40},

		// Not UTF-8
		{"a\xff\xfeb", "a\uFFFDb", 40}, {"\xe2\x82", "\uFFFD", 40},
	} {
		got := Shorten(test.text, test.limit)
		failIf(t, got != test.want, "shorten(%q, %d) = %q, want %q", test.text, test.limit, got, test.want)
	}
}

func TestOutsideTextCannotCommandATerminal(t *testing.T) {
	for text, want := range map[string]string{
		"a\x1b[2Jb": "a [2Jb", " two\nlines\r\n": " two lines  ", "bell\a nul\x00": "bell  nul ", "turned \u202eback": "turned  back",
		"C1 \u009b31m": "C1  31m", "bad \xff utf-8": "bad \uFFFD utf-8", "Übersicht · ok": "Übersicht · ok",
		"joined \u200d": "joined \u200d", // no command: emoji and several scripts are written with it
	} {
		got := OneLine(text)
		failIf(t, got != want, "one line of %q is %q, want %q", text, got, want)
	}
}

func TestTextIsCutByCharacters(t *testing.T) {
	for _, test := range []struct {
		text, want string
		width      int
	}{{"", "", 0}, {"abc", "abc", 3}, {"abcd", "ab…", 3}, {"äöüß", "äö…", 3}, {"ab", "…", 1}, {"ab", "", 0}, {"ab", "", -1}} {
		got := Cut(test.text, test.width)
		failIf(t, got != test.want, "cut(%q, %d) = %q, want %q", test.text, test.width, got, test.want)
	}
}

func TestShortenedTextFitsWhateverItWas(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		limit := rapid.IntRange(len("…"), 80).Draw(r, "limit")
		text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(r, "text")
		got := Shorten(text, limit)
		stopIf(t, !fits(got, limit) || !utf8.ValidString(got) || Shorten(got, limit) != got || strings.TrimSpace(got) != got,
			"shorten(%q, %d) = %q", text, limit, got)
	})
}

func fits(text string, limit int) bool {
	invalid := func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u202e' }
	return len(text) <= limit && strings.ToValidUTF8(text, "") == text && !strings.ContainsFunc(text, invalid)
}
