package words

import (
	"regexp"
	"strings"
	"testing"
)

func TestASubjectIsAKnownNounATextInQuotesOrADefinedName(t *testing.T) {
	for sentence, want := range map[string]string{
		"the model every 2 hours": "every 2 hours", "Model every 2 hours": "every 2 hours", "every model every 2 hours": "every 2 hours", "it, daily": "daily",
		"the big table daily": "daily", "all big tables daily": "daily", "BigTable twice per day": "twice per day", "the product feed, hourly": "hourly",
		`"A" and "B" daily`: "daily", `the "0" feed daily`: "daily", `table "0" daily`: "daily", "nightly imports daily": "daily", "the Nightly Imports daily": "daily", "the model": "", "it": "",
		// None of these is a subject, so that its words must be understood in another way
		"nothing every 2 hours": "nothing every 2 hours", "06:00 daily": "06:00 daily", "the daily report": "the daily report", "less than daily": "less than daily",
		"table 5 daily": "5 daily", "no model daily": "no model daily", "the": "the", "": "", "every 2 hours": "every 2 hours", `and "0"`: `and "0"`,
	} {
		if got := strings.Join(CutSubject(strings.Fields(sentence), "nightly imports", ""), " "); got != want {
			t.Errorf("%q: %q is left, expected %q", sentence, got, want)
		}
	}
	pattern := regexp.MustCompile(`(?i)^` + NounPattern + `$`)
	for text, want := range map[string]bool{"the model": true, "Its banner": true, "big tables": true, "the dog": false, "no model": false, "": false} {
		if pattern.MatchString(text) != want {
			t.Errorf("%q: a match is %t", text, !want)
		}
	}
}
