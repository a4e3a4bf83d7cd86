package words

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit/check"
)

var failIf = check.FailIf

func TestAMistypedWordIsNearToTheOneThatWasMeantOrToNone(t *testing.T) {
	known := []string{"max-queued", "queue", "quiet", "redis", "concurrency", "fetch"}
	for mistyped, want := range map[string]string{
		"max-queue": "max-queued", "quue": "queue", "redsi": "redis", "sider": "", "rediss": "redis", "conc": "concurrency", "fast": "", "x": "", "": "", "qu": "", "que": "queue",
	} {
		got := NearestWord(mistyped, known)
		failIf(t, got != want, "%q: want %q, got %q", mistyped, want, got)
	}
}

func TestTheNearestSentenceNeedsTheFewestChanges(t *testing.T) {
	known := []string{"every day at 6 AM and 4 PM", "every 2 hours", "every weekday at 8:00", "panic"}
	for text, want := range map[string]string{
		"every 2 hours": "every 2 hours", "every twelve hours": "every 2 hours", "evry 2 hours": "every 2 hours",
		"every day at 25:00": "every day at 6 AM and 4 PM", "Every WEEKDAY, at 9:00.": "every weekday at 8:00", "pannic": "panic", "`panic`!": "panic",
	} {
		got := Nearest(text, known)
		failIf(t, got != want, "%s: %q, want %q", text, got, want)
	}
	for _, text := range []string{"", " . ", strings.Repeat("x", 100_000), strings.Repeat("every ", 100_000), "\xff\xfe"} {
		got := Nearest(text, known)
		failIf(t, got == "", "%.20q: expected any sentence, found none", text)
	}
	got := Nearest("panic", nil)
	failIf(t, got != "", "no sentence is known, and %q is the nearest", got)
}

func TestADurationMayHaveItsNumbersInWords(t *testing.T) {
	pattern := regexp.MustCompile(`(?i)^(?:` + DurationPattern + `)$`)
	for text, want := range map[string]time.Duration{
		"one week": 7 * 24 * time.Hour, "an hour": time.Hour, "half an hour": 30 * time.Minute, "Half a minute": 30 * time.Second, "half one hour": 30 * time.Minute,
		"an hour and a half": 90 * time.Minute, "two days and a half": 60 * time.Hour, "thirty minutes": 30 * time.Minute, "1 hour, thirty minutes": 90 * time.Minute,
		"1h30m": 90 * time.Minute, "PT5M": 5 * time.Minute, "1.5h": 90 * time.Minute, "90s": 90 * time.Second,
	} {
		got, err := ParseDuration(text)
		failIf(t, err != nil || got != want, "%s: %v, %v; want %v", text, got, err, want)
		failIf(t, !pattern.MatchString(text), "%s: expected a match of the pattern, found none", text)
	}
	for _, text := range []string{"half", "half an", "half hour", "and a half", "hour and a half", "a fortnight", "twenty-one days"} {
		got, err := ParseDuration(text)
		failIf(t, err == nil, "%s is read as %v", text, got)
	}
}

func TestASubjectIsAKnownNounATextInQuotesOrADefinedName(t *testing.T) {
	for sentence, want := range map[string]string{
		"the model every 2 hours": "every 2 hours", "Model every 2 hours": "every 2 hours", "every model every 2 hours": "every 2 hours", "it, daily": "daily",
		"the big table daily": "daily", "all big tables daily": "daily", "BigTable twice per day": "twice per day", "the product feed, hourly": "hourly",
		`"A" and "B" daily`: "daily", `the "0" feed daily`: "daily", `table "0" daily`: "daily", "nightly imports daily": "daily", "the Nightly Imports daily": "daily", "the model": "", "it": "",
		// None of these is a subject, so that its words must be understood in another way
		"nothing every 2 hours": "nothing every 2 hours", "06:00 daily": "06:00 daily", "the daily report": "the daily report", "less than daily": "less than daily",
		"table 5 daily": "5 daily", "no model daily": "no model daily", "the": "the", "": "", "every 2 hours": "every 2 hours", `and "0"`: `and "0"`,
	} {
		got := strings.Join(CutSubject(strings.Fields(sentence), "nightly imports", ""), " ")
		failIf(t, got != want, "%q: %q is left, expected %q", sentence, got, want)
	}
	pattern := regexp.MustCompile(`(?i)^` + NounPattern + `$`)
	for text, want := range map[string]bool{"the model": true, "Its banner": true, "big tables": true, "the dog": false, "no model": false, "": false} {
		failIf(t, pattern.MatchString(text) != want, "%q: a match is %t", text, !want)
	}
}

func TestOrdinalsAreReadInWordsAndInDigits(t *testing.T) {
	for n, spellings := range map[int]string{
		1: "first 1st", 2: "second 2nd", 3: "third 3rd", 11: "eleventh 11th", 12: "twelfth 12th", 13: "thirteenth 13th", 20: "twentieth 20th",
		21: "twenty-first 21st Twenty first", 22: "twenty-second 22nd", 30: "thirtieth 30th", 99: "ninety-ninth 99th", 101: "101st", 111: "111th", 1000: "1000th",
	} {
		for _, word := range strings.Fields(strings.ReplaceAll(spellings, "Twenty first", "Twenty_first")) {
			got, ok := Ordinal(strings.ReplaceAll(word, "_", " "))
			failIf(t, !ok || got != n, "%s: %d, %v; want %d", word, got, ok, n)
		}
		if again, ok := Ordinal(FormatOrdinal(n)); !ok || again != n {
			t.Errorf("%d became %s and then %d", n, FormatOrdinal(n), again)
		}
	}
	for _, word := range []string{"", "zeroth", "0th", "1th", "22st", "11st", "-1st", "sekond", "twenty-twentieth", "one", "half"} {
		n, ok := Ordinal(word)
		failIf(t, ok, "%s is read as %d", word, n)
	}
}

func TestNumbersAreReadInWordsAndInDigits(t *testing.T) {
	for word, want := range map[string]int{"a": 1, "an": 1, "zero": 0, "one": 1, "twelve": 12, "twenty": 20, "thirty": 30, "ninety": 90, "0": 0, "007": 7, "9999999": 9999999} {
		got, ok := Number(word)
		failIf(t, !ok || got != want, "%s: %d, %v; want %d", word, got, ok, want)
	}
	for _, word := range []string{"", "-1", "+1", "1.5", "1e3", "12345678", "Two", "first", "half"} {
		n, ok := Number(word)
		failIf(t, ok, "%s is read as %d", word, n)
	}
}

func TestAListIsWrittenWithOneAnd(t *testing.T) {
	for want, items := range map[string][]string{"": nil, "a": {"a"}, "a and b": {"a", "b"}, "a, b and c": {"a", "b", "c"}} {
		got := List(items)
		failIf(t, got != want, "%q became %q, want %q", items, got, want)
	}
}

func TestASentenceIsCutIntoWordsWithoutItsMarks(t *testing.T) {
	for sentence, want := range map[string]string{
		"Refresh twice per day, at 6 a.m. & 4 P.M.": "refresh twice per day at 6 am 4 pm",
		" every\tday; at 6:00 !. ":                  "every day at 6:00", "": "", " . ": "", ",": "",
	} {
		got := strings.Join(Cut(sentence), " ")
		failIf(t, got != want, "%q became %q, want %q", sentence, got, want)
	}
}

func TestOneIsCountedByAnotherName(t *testing.T) {
	for n, want := range map[int]string{0: "0 retries", 1: "1 retry", 2: "2 retries"} {
		got := Count(n, "retry", "retries")
		failIf(t, got != want, "%d: got %q, want %q", n, got, want)
	}
}

func TestAnInstantIsSoFarAwayInRoundParts(t *testing.T) {
	now := time.Date(2026, 11, 24, 19, 5, 0, 0, time.UTC)
	for away, want := range map[time.Duration]string{
		0: "now", time.Second - 1: "now", 1 - time.Second: "now", time.Second: "in 1s", -time.Second: "1s ago", 90*time.Second + 1: "in 1m30s",
		-90*time.Second - 1: "1m30s ago", time.Hour + 90*time.Second: "in 1h1m", 24*time.Hour - 1: "in 23h59m", 24*time.Hour + 90*time.Minute: "in 1d1h",
	} {
		got := Distance(now.Add(away), now)
		failIf(t, got != want, "%s away: got %q, want %q", away, got, want)
	}
	for length, want := range map[time.Duration]string{
		time.Minute - time.Millisecond: "59s999ms", time.Minute + time.Millisecond: "1m", time.Hour - time.Millisecond: "59m59s", time.Hour + time.Second: "1h",
	} {
		got := Roughly(length)
		failIf(t, got != want, "%s: got %q, want %q", length, got, want)
	}
}

func TestAnOrdinalIsWrittenAsAWordUpToTwentieth(t *testing.T) {
	for n, want := range map[int]string{0: "0th", 1: "first", 2: "second", 20: "twentieth", 21: "21st", 42: "42nd", 103: "103rd", 112: "112th", 24: "24th"} {
		got := FormatOrdinal(n)
		failIf(t, got != want, "%d: got %q, want %q", n, got, want)
	}
}

func TestANumberIsWrittenWithoutAMarkOrWithOneThatMeansOneThing(t *testing.T) {
	for text, want := range map[string]bool{"1.000 hours": false, "999.500 seconds": false, "1000 hours": true, "0.500 hours": true, "1.25 hours": true} {
		_, err := ParseDuration(text)
		failIf(t, err == nil != want, "%s: %v", text, err)
	}
}

func TestNonsenseIsNearToNoSentence(t *testing.T) {
	book := []string{"every day at 6 AM", "every 2 hours"}
	for text, want := range map[string]string{
		"evry 2 hours": "every 2 hours", "every 3 blue hours": "every 2 hours", "every blue moon": "", "every blue": "every 2 hours",
		"colourless green ideas sleep": "", "": "",
	} {
		got := Near(text, book)
		failIf(t, got != want, "%q: got %q, want %q", text, got, want)
	}
}

// Authors rather leave words out than add some, and a sentence is known by its first word.
func TestAWordLeftOutCostsLessThanOneTooMany(t *testing.T) {
	for _, test := range []struct {
		known      []string
		text, want string
	}{
		{[]string{"hourly", "hourly from noon to midnight"}, "hourly from noon", "hourly from noon to midnight"},
		{[]string{"weekly at noon", "daily at dusk"}, "daily at noon", "daily at dusk"},
		{[]string{"daily at noon", "daily at five"}, "daily at 17:00", "daily at five"}, // one number is as good as another
		{[]string{"daily noon", "daily noon here"}, "daily and noon", "daily noon"},
	} {
		got := Nearest(test.text, test.known)
		failIf(t, got != test.want, "%q: got %q, want %q", test.text, got, test.want)
	}
}
