package document

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

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
		if got := Shorten(test.text, test.limit); got != test.want {
			t.Errorf("shorten(%q, %d) = %q, want %q", test.text, test.limit, got, test.want)
		}
	}
}

func TestOutsideTextCannotCommandATerminal(t *testing.T) {
	for text, want := range map[string]string{
		"a\x1b[2Jb":         "a [2Jb",
		" two\nlines\r\n":   " two lines  ",
		"bell\a nul\x00":    "bell  nul ",
		"turned \u202eback": "turned  back",
		"C1 \u009b31m":      "C1  31m",
		"bad \xff utf-8":    "bad \uFFFD utf-8",
		"Übersicht · ok":    "Übersicht · ok",
		"joined \u200d":     "joined \u200d", // no command: emoji and several scripts are written with it
	} {
		if got := OneLine(text); got != want {
			t.Errorf("one line of %q is %q, want %q", text, got, want)
		}
	}
}

func TestTextIsCutByCharacters(t *testing.T) {
	for _, test := range []struct {
		text, want string
		width      int
	}{{"", "", 0}, {"abc", "abc", 3}, {"abcd", "ab…", 3}, {"äöüß", "äö…", 3}, {"ab", "…", 1}, {"ab", "", 0}, {"ab", "", -1}} {
		if got := Cut(test.text, test.width); got != test.want {
			t.Errorf("cut(%q, %d) = %q, want %q", test.text, test.width, got, test.want)
		}
	}
}

func TestShortenedTextFitsWhateverItWas(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		limit := rapid.IntRange(len("…"), 80).Draw(r, "limit")
		text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(r, "text")
		got := Shorten(text, limit)
		if !fits(got, limit) || !utf8.ValidString(got) || Shorten(got, limit) != got || strings.TrimSpace(got) != got {
			t.Fatalf("shorten(%q, %d) = %q", text, limit, got)
		}
	})
}

func fits(text string, limit int) bool {
	unfit := func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u202e' }
	return len(text) <= limit && strings.ToValidUTF8(text, "") == text && !strings.ContainsFunc(text, unfit)
}
