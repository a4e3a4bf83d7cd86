package english

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/words"
)

// FuzzParse checks that no text breaks the reader, that each refusal has the place of its fault, and that what both Parse and the
// model accept is printed so that it reads back.
func FuzzParse(f *testing.F) {
	sources, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, source := range sources {
		text, err := os.ReadFile(source)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	for _, form := range slices.Concat(sentences, actions) {
		f.Add(form.example)
	}
	for _, ordinal := range words.Firsts {
		f.Add("On the " + ordinal + " failure, retry immediately")
		f.Add("On the " + ordinal + " failure, retry after 1 minute")
	}
	for _, text := range []string{
		"Refresh by the rule \"FREQ=DAILY\\r\\n\"\nRefresh also by the rule EXDATE:20260105T000000", "Refresh the \"on\" report 0 6 * * 1 (Europe/Berlin)",
		"On the first failure:\n  - Retry after an hour and a half\n- On the 2nd failure:\n- panic", "# h\n```\n1) **Allow** `90s`. Panic.\n* Notify nobody",
		"Retry only on \"a\", B and C errors\nOn a Gone error, never retry. Do not retry on permanent errors",
		"Up to an age of 1 day, retry now\nUp to an age of 2 days, wait for the next planned refresh", "Mark the banner with “failed.”\nVary each delay by up to 12.5%",
		"Retry 3 times with fibonacci delays from half a minute\nOn the fourth failure, reset attempt_no and wait until the next scheduled refresh",
		"Vary the delays by 0.00000000000000000000000000000000000000001 percent\nRetry with exponential delays, factor 1.0000000000000002",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4096 {
			t.Skip("long texts are slow, and say nothing new")
		}
		doc, source, err := Parse(text)
		if err != nil {
			checkRefusal(t, text, err)
			return
		}
		if _, err := policy.Parse(doc); err != nil {
			var refused *document.Error
			if !errors.As(err, &refused) {
				t.Fatalf("%q is refused without a field: %v", text, err)
			}
			checkRefusal(t, text, &Error{Line: source.Line(refused.Field), FieldError: refused})
			return
		}
		checkPrint(t, canonical(t, doc))
	})
}

func checkRefusal(t *testing.T, text string, err error) {
	t.Helper()
	var refused *Error
	if !errors.As(err, &refused) || refused.FieldError == nil || refused.Line < 0 || refused.Line > strings.Count(text, "\n")+1 {
		t.Errorf("%q is refused without a place in it: %v", text, err)
	}
}
