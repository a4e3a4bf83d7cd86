package english

import (
	"errors"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/model/document"
)

func TestAnUnknownSentenceIsRefusedWithItsLineAndTheNearestOne(t *testing.T) {
	for text, want := range map[string]string{
		"Panic\n\n# heading\n- On the sekond failure, retry after 1 minute.": `line 4: expected a known sentence, found "On the sekond failure, retry after 1 minute" ("sekond" is not understood there); nearest: On the second failure, retry after 1 minute`,
		"Pannic":                                     `line 1: expected a known sentence, found "Pannic" ("pannic" is not understood there); nearest: Panic`,
		"asdf qwer":                                  `line 1: expected a known sentence such as "Refresh the model every 2 hours" or "On the first failure, retry immediately", found "asdf qwer"`,
		"Retry after 1 minute":                       `line 1: expected a known sentence, found "Retry after 1 minute" ("after" is not understood there); nearest: Retry only between 9 AM and 5 PM`,
		"On the first failure, retry never":          `line 1: expected a known sentence, found "On the first failure, retry never" ("never" is not understood there); nearest: On the first failure, retry immediately`,
		"On Gone errors, give up":                    `line 1: expected an error type: a known one such as timeout, one in the form of ValidationError or http_503, or one in quotes, found "Gone errors"`,
		"- Give up after 1 hour of \"unsuccessful\"": `line 1: expected a known sentence, found "Give up after 1 hour of \"unsuccessful\""; nearest: Give up after one week of unsuccessful attempts`,
	} {
		if _, _, err := Parse(text); err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
}

func TestAContradictionIsRefusedWithBothLines(t *testing.T) {
	for text, want := range map[string]string{
		"Allow 1 hour\nPanic\nAllow 1 hour to complete":                           `line 3: expected one sentence about the timeout, which is in line 1, found a second: "Allow 1 hour to complete"`,
		"Use the time zone UTC\nRefresh by the rule FREQ=DAILY (UTC)":             `line 2: expected one sentence about the time zone, which is in line 1, found a second: "Refresh by the rule FREQ=DAILY (UTC)"`,
		"On `Gone` errors, retry immediately\nOn \"Gone\", never retry":           `line 2: expected one sentence about it, which is in line 1, found a second: "On \"Gone\", never retry"`,
		"On the first failure, retry now\nOn the 1st failure, give up":            `line 2: expected one sentence about the first failure, which is in line 1, found a second: "On the 1st failure, give up"`,
		"On the first failure, retry now and retry after 1 minute":                `line 1: expected one delay after a failure, as line 1 says already, found "On the first failure, retry now and retry after 1 minute"`,
		"Do not retry\nWait 5 minutes between retries":                            `line 2: expected one sentence about when to retry, which is in line 1, found a second: "Wait 5 minutes between retries"`,
		"Allow 1 hour\nWait 5 minutes between retries":                            `line 2: expected how many retries there are, such as "Retry up to 3 times", found nothing of that`,
		"On the first failure, wait until the next scheduled refresh and give up": `line 1: expected only one of a retry, a wait for the next scheduled refresh, or giving up after the first failure, found more than one`,
		"Notify nobody\nEmail the customer that it is disabled":                   `line 2: expected one sentence about whom to notify, which is in line 1, found a second: "Email the customer that it is disabled"`,
		"Set no limits\nRun at most 1 at a time for each {x}":                     `line 2: expected one sentence about what runs at a time, which is in line 1, found a second: "Run at most 1 at a time for each {x}"`,
		"Panic\nWait until the next scheduled refresh":                            `line 2: expected giving up after the last retry, as line 1 says, found "Wait until the next scheduled refresh"`,
		"Wait until the next scheduled refresh\nOn the first failure, give up":    `line 2: expected no failure after line 1, which says what follows the last one, found "On the first failure, give up"`,
		"Open no circuit\nProbe an open circuit after 5 minutes":                  `line 2: expected one sentence about the circuit, which is in line 1, found a second: "Probe an open circuit after 5 minutes"`,
		"Count only A_B for the circuit\nCount only C_D for the circuit":          `line 2: expected one sentence about it, which is in line 1, found a second: "Count only C_D for the circuit"`,
	} {
		if _, _, err := Parse(text); err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
}

func TestTheFailuresFollowEachOtherAndTheLastIsTheOneAfterTheLastRetry(t *testing.T) {
	const number = ", because the failure after the last retry has the next number"
	for text, want := range map[string]string{
		"On the first failure, retry now\nOn the third failure, retry now":                                   `line 2: expected the second failure after the first in line 1` + number + `, found the third`,
		"On the first failure, retry now\nPanic\nOn the second failure, retry now":                           `line 3: expected no failure after line 2, which says what follows the last one, found "On the second failure, retry now"`,
		"On the first failure, retry now\nOn the fourth failure, give up\nPanic":                             `line 2: expected the second failure after the first in line 1` + number + `, found the fourth`,
		"On the first failure, give up\nOn the second failure, retry now":                                    `line 2: expected nothing after the first failure, which line 1 makes the last, found the second`,
		"On the first failure:\nAllow 1 hour":                                                                `line 1: expected a retry, a wait for the next scheduled refresh, or giving up after the first failure, found nothing of that`,
		"Retry up to 5 times with fixed delays\nOn the fifth failure, give up":                               `line 2: expected the sixth failure, the one after the last retry of line 1, found the fifth`,
		"Retry up to 1 times with fixed delays\nOn the second failure, give up\nOn the third failure, panic": `line 3: expected nothing after the second failure, found the third`,
		"Retry with fixed delays\nOn the fifth failure, give up":                                             `line 2: expected no number of a failure, because line 1 does not say how many retries there are, found "On the fifth failure, give up"`,
	} {
		if _, _, err := Parse(text); err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
}

func TestWhatStandsInASentenceIsRefusedWithItsLine(t *testing.T) {
	for text, want := range map[string]string{
		"Panic\nAllow 11 years":                      "line 2: timeout: expected a duration such as",
		"On the first failure, retry after 1 mintue": `line 1: retries[0]: expected a duration such as "90s", "1h30m", "PT5M" or "10 minutes", found "1 mintue" (the unit "mintue" is not known)`,
		"Count only every error for the circuit":     "line 1: expected an error type: a known one",
		"Run at most 4 at a time for each host":      "nearest: Run at most 4 at a time for each {host(input_url)}",
		// No part of a schedule is taken for a part of what is refreshed
		`Refresh on weekdays the "big" model every 2 hours`: "line 1: rrule: expected",
		"Refresh the model every 2 hours except on purpose": "line 1: rrule: expected",
		"Send a request to us on Mondays every 2 hours":     "line 1: expected a known sentence",
		"On an error, retry after 1 minute":                 "line 1: expected an error type: a known one",
		`Give the reason "it failed`:                        `line 1: expected a text in quotes`,
		"Refresh also by the rule EXDATE:20260101T000000":   `line 1: expected a sentence such as "Refresh the model by the rule FREQ=DAILY" before it`,
		"":                          `expected at least one sentence such as "Refresh the model every 2 hours", found nothing`,
		strings.Repeat("\n", 1000):  "expected at most 1000 lines, found 1001",
		strings.Repeat("x", 262145): "expected at most 262144 bytes, found 262145",
	} {
		_, _, err := Parse(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s:\n got %v\nwant %s", text, err, want)
		}
		if located := (*Error)(nil); !errors.As(err, &located) || !errors.As(err, new(*document.Error)) {
			t.Errorf("%.80s: %T is no *Error with a *document.Error", text, err)
		}
	}
}

// TestAHostileTextIsRefusedSoon has no clock: a slow comparison would take minutes, and the time limit of the test run ends it.
func TestAHostileTextIsRefusedSoon(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("On the first failure ", 1000), strings.Repeat("panic and ", 2000), "On the first failure, " + strings.Repeat("a and ", 3000),
		"Retry only on " + strings.Repeat("a, ", 5000) + "!!", strings.Repeat(`"" `, 5000), strings.Repeat("x", 65000), "Refresh " + strings.Repeat("every ", 4000),
		strings.Repeat("- Reset attempt_no:\n", 1000), "Allow " + strings.Repeat("1 hour ", 3000), strings.Repeat("Panic. ", 3000) + "x",
	} {
		if doc, _, err := Parse(text); err == nil && len(text) > 12000 && !strings.HasPrefix(text, "- Reset") {
			t.Errorf("%.40s… was accepted: %v", text, doc)
		}
	}
}
