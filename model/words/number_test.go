package words

import (
	"strings"
	"testing"
)

func TestOrdinalsAreReadInWordsAndInDigits(t *testing.T) {
	for n, spellings := range map[int]string{
		1: "first 1st", 2: "second 2nd", 3: "third 3rd", 11: "eleventh 11th", 12: "twelfth 12th", 13: "thirteenth 13th", 20: "twentieth 20th",
		21: "twenty-first 21st Twenty first", 22: "twenty-second 22nd", 30: "thirtieth 30th", 99: "ninety-ninth 99th", 101: "101st", 111: "111th", 1000: "1000th",
	} {
		for _, word := range strings.Fields(strings.ReplaceAll(spellings, "Twenty first", "Twenty_first")) {
			if got, ok := Ordinal(strings.ReplaceAll(word, "_", " ")); !ok || got != n {
				t.Errorf("%s: %d, %v; want %d", word, got, ok, n)
			}
		}
		if again, ok := Ordinal(FormatOrdinal(n)); !ok || again != n {
			t.Errorf("%d became %s and then %d", n, FormatOrdinal(n), again)
		}
	}
	for _, word := range []string{"", "zeroth", "0th", "1th", "22st", "11st", "-1st", "sekond", "twenty-twentieth", "one", "half"} {
		if n, ok := Ordinal(word); ok {
			t.Errorf("%s is read as %d", word, n)
		}
	}
}

func TestNumbersAreReadInWordsAndInDigits(t *testing.T) {
	for word, want := range map[string]int{"a": 1, "an": 1, "zero": 0, "one": 1, "twelve": 12, "twenty": 20, "thirty": 30, "ninety": 90, "0": 0, "007": 7, "9999999": 9999999} {
		if got, ok := Number(word); !ok || got != want {
			t.Errorf("%s: %d, %v; want %d", word, got, ok, want)
		}
	}
	for _, word := range []string{"", "-1", "+1", "1.5", "1e3", "12345678", "Two", "first", "half"} {
		if n, ok := Number(word); ok {
			t.Errorf("%s is read as %d", word, n)
		}
	}
}

func TestAListIsWrittenWithOneAnd(t *testing.T) {
	for want, items := range map[string][]string{"": nil, "a": {"a"}, "a and b": {"a", "b"}, "a, b and c": {"a", "b", "c"}} {
		if got := List(items); got != want {
			t.Errorf("%q became %q, want %q", items, got, want)
		}
	}
}

func TestASentenceIsCutIntoWordsWithoutItsMarks(t *testing.T) {
	for sentence, want := range map[string]string{
		"Refresh twice per day, at 6 a.m. & 4 P.M.": "refresh twice per day at 6 am 4 pm",
		" every\tday; at 6:00 !. ":                  "every day at 6:00",
		"":                                          "", " . ": "", ",": "",
	} {
		if got := strings.Join(Cut(sentence), " "); got != want {
			t.Errorf("%q became %q, want %q", sentence, got, want)
		}
	}
}

func TestOneIsCountedByAnotherName(t *testing.T) {
	for n, want := range map[int]string{0: "0 retries", 1: "1 retry", 2: "2 retries"} {
		if got := Count(n, "retry", "retries"); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}
