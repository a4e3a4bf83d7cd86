package english

import (
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/model/document"
)

// decoded reads a document as the decoder of JSON makes it.
func decoded(t *testing.T, text string) map[string]any {
	t.Helper()
	doc := make(map[string]any)
	err := json.Unmarshal([]byte(text), &doc)
	stopIf(t, err != nil, "%s: %v", text, err)
	return doc
}

// The canonical forms are worked out by hand from the source document.
func TestWholePoliciesInEnglishAreRead(t *testing.T) {
	for name, want := range map[string]string{
		"expr":      `{"rrule":"FREQ=HOURLY;INTERVAL=2","timeout":"1h","retries":["0s","1m","5m","10m","15m"],"alignment":"align_planned","on_exhausted":"give_up"}`,
		"thumbnail": `{"timeout":"1m","retries":["0s","1m","5m"],"alignment":"align_planned","on_exhausted":"give_up","disabled_reason":"thumbnail creation failed"}`,
		"twice_daily": `{"rrule":"FREQ=DAILY;BYHOUR=6,16;BYMINUTE=0;BYSECOND=0","timeout":"1h","retries":["0s","1m","5m","15m","30m","1h"],` +
			`"alignment":"align_planned","on_exhausted":"give_up","notify":["disabled"]}`,
		"one_week": `{"rrule":"FREQ=DAILY;BYHOUR=6,16;BYMINUTE=0;BYSECOND=0","timeout":"1h","retries":["0s","1m","5m","15m","30m","1h"],` +
			`"alignment":"align_planned","on_exhausted":"next_planned","give_up_after":"1w","notify":["disabled"]}`,
	} {
		text, err := os.ReadFile("testdata/" + name + ".txt")
		must(t, err)
		doc, _, err := Parse(string(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		diff := cmp.Diff(want, canonical(t, doc))
		failIf(t, diff != "", "%s: -want +got\n%s", name, diff)
	}
}

// What Print says in the same words is read back by the tests of Print.
func TestEverySentenceIsRead(t *testing.T) {
	for text, want := range map[string]string{
		// Those that set nothing
		"Retry policy:": `{}`, "Use the defaults": `{}`, "Send a request to the thumbnailer service.": `{}`,
		`Send a request to the "daily report" service`:    `{}`,
		`Send a request to the feed "by the Daily Mail".`: `{}`,

		// The schedule
		`Refresh the "every 5 minutes" feed every 2 hours`:           `{"rrule":"FREQ=HOURLY;INTERVAL=2"}`,
		"Send a request to the feed every 2 hours":                   `{"rrule":"FREQ=HOURLY;INTERVAL=2"}`,
		"Refresh BigTable twice per day at 6 a.m. and 4 p.m.":        `{"rrule":"FREQ=DAILY;BYHOUR=6,16;BYMINUTE=0;BYSECOND=0"}`,
		"Refresh at 6 a.m. Monday.":                                  `{"rrule":"FREQ=WEEKLY;BYDAY=MO;BYHOUR=6;BYMINUTE=0;BYSECOND=0"}`,
		"Refresh the model daily, at 6:00":                           `{"rrule":"FREQ=DAILY;BYHOUR=6;BYMINUTE=0;BYSECOND=0"}`,
		`Refresh the "St. Gallen" feed every 2 hours`:                `{"rrule":"FREQ=HOURLY;INTERVAL=2"}`,
		`Refresh "A" and "B" every "2 hours"`:                        `{"rrule":"FREQ=HOURLY;INTERVAL=2"}`,
		"Refresh the model @every 90m":                               `{"rrule":"FREQ=MINUTELY;INTERVAL=90"}`,
		`Refresh "table 5" on the last Friday of the month at 18:00`: `{"rrule":"FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=18;BYMINUTE=0;BYSECOND=0"}`,
		"Refresh BigTable first Monday of the month at 6:00":         `{"rrule":"FREQ=MONTHLY;BYDAY=1MO;BYHOUR=6;BYMINUTE=0;BYSECOND=0"}`,
		"Refresh the model twice a day":                              `{"rrule":"FREQ=DAILY;BYHOUR=0,12;BYMINUTE=0;BYSECOND=0","spread":"12h"}`,
		"Refresh it twice a day\nSpread the refreshes over 1 hour":   `{"rrule":"FREQ=DAILY;BYHOUR=0,12;BYMINUTE=0;BYSECOND=0","spread":"1h"}`,
		"Refresh 6 AM every day Berlin time":                         `{"rrule":"FREQ=DAILY;BYHOUR=6;BYMINUTE=0;BYSECOND=0","timezone":"Europe/Berlin"}`,
		"Refresh every hour starting 1 March 2030":                   `{"rrule":"FREQ=HOURLY","dtstart":"2030-03-01T00:00:00"}`,
		"This policy is called \"nightly\". Refresh nightly at noon": `{"name":"nightly","rrule":"FREQ=DAILY;BYHOUR=12;BYMINUTE=0;BYSECOND=0"}`,
		"Refresh the feed by the rule FREQ=DAILY;BYHOUR=6":           `{"rrule":"FREQ=DAILY;BYHOUR=6"}`,
		"Refresh by FREQ=DAILY;BYHOUR=6":                             `{"rrule":"FREQ=DAILY;BYHOUR=6"}`,
		`Refresh by the rule "FREQ=DAILY; BYHOUR=6"`:                 `{"rrule":"FREQ=DAILY; BYHOUR=6"}`,
		"Refresh by the rule FREQ=DAILY\nRefresh also by the rule RDATE:20260101T090000\nRefresh it also by the rule EXDATE:20260102T000000": `{"rrule":"FREQ=DAILY\nRDATE:20260101T090000\nEXDATE:20260102T000000"}`,
		"Refresh the model every 2 hours in the time zone Europe/Berlin":                                                                     `{"rrule":"FREQ=HOURLY;INTERVAL=2","timezone":"Europe/Berlin"}`,
		"Refresh the model every 2 hours (Europe/Berlin)":                                                                                    `{"rrule":"FREQ=HOURLY;INTERVAL=2","timezone":"Europe/Berlin"}`,
		"Refresh by the rule FREQ=DAILY, in the timezone UTC":                                                                                `{"rrule":"FREQ=DAILY","timezone":"UTC"}`,
		"Begin the schedule on 2026-01-01.":                                                                                                  `{"dtstart":"2026-01-01"}`,
		`This policy is called "twice-daily"`:                                                                                                `{"name":"twice-daily"}`,
		`The policy is named twice-daily`:                                                                                                    `{"name":"twice-daily"}`,

		// Lengths of time
		"Allow an hour and a half":                                 `{"timeout":"1h30m"}`,
		"allow half an hour to finish":                             `{"timeout":"30m"}`,
		"Allow 1 hour and thirty minutes to complete":              `{"timeout":"1h30m"}`,
		"Allow 1 day, two hours, and 3 secs":                       `{"timeout":"1d2h3s"}`,
		"Allow 90s":                                                `{"timeout":"1m30s"}`,
		"Allow 1.5h":                                               `{"timeout":"1h30m"}`,
		"Allow PT1H30M to complete":                                `{"timeout":"1h30m"}`,
		"Allow unlimited time for a response":                      `{"timeout":"none"}`,
		"Allow 10 minutes to wait in the queue":                    `{"queue_timeout":"10m"}`,
		"Take a worker for lost when it is silent for two minutes": `{"silent_after":"2m"}`,
		"Consider the worker as lost after 30 seconds of silence":  `{"silent_after":"30s"}`,
		"A worker that is silent for an hour counts as lost":       `{"silent_after":"1h"}`,
		"Never take a worker for lost":                             `{"silent_after":"none"}`,
		"Spread the refreshes over ten minutes":                    `{"spread":"10m"}`,
		"Run missed refreshes if they are younger than an hour":    `{"misfire":"run_if_younger_than 1h"}`,
		"On the first failure, retry at once":                      `{"retries":["0s"]}`,
		"After the 1st failure retry in 5 minutes":                 `{"retries":["5m"]}`,

		// The retry list
		"On the first failure, wait for the next scheduled refresh":                                                     `{"retries":["next"]}`,
		"On the first failure:\n  - wait until next planned refresh":                                                    `{"retries":["next"]}`,
		"On the second failure, retry after 1 minute\nOn the first failure, retry now":                                  `{"retries":["0s","1m"]}`,
		"On the first failure, retry immediately. On the second failure, give up.":                                      `{"retries":["0s"],"on_exhausted":"give_up"}`,
		"On the first failure, panic!":                                                                                  `{"retries":[],"on_exhausted":"give_up"}`,
		"On the first failure, disable the model":                                                                       `{"retries":[],"on_exhausted":"give_up"}`,
		"On the first failure, reset attempt_no and wait until the next scheduled refresh, or give up if there is none": `{"retries":[],"on_exhausted":"next_planned"}`,
		"Never retry.": `{"retries":[]}`,
		"Do not retry\nOn the first failure, give up": `{"retries":[],"on_exhausted":"give_up"}`,
		"Retry with Fibonacci delays from 30 seconds": `{"retries":{"strategy":"fibonacci","base":"30s"}}`,

		// Strategies
		"Retry at most 2 times with linear delays from 1m\nOn the third failure, give up":                               `{"retries":{"strategy":"linear","base":"1m","count":2},"on_exhausted":"give_up"}`,
		`Retry by the expression "k < 5 ? \"10m\" : false"`:                                                             `{"retries":{"expr":"k < 5 ? \"10m\" : false"}}`,
		`Retry by the pattern "10 5s 10m"`:                                                                              `{"retries":"10 5s 10m"}`,
		"Up to an age of 1 day, retry after 5 minutes\nUp to an age of one week, wait until the next scheduled refresh": `{"retries":{"by_age":[{"up_to":"1d","delay":"5m"},{"up_to":"1w","delay":"next"}]}}`,
		"Vary each delay by up to 12.5%":                                                                                `{"jitter":0.125}`,

		// Retries and the schedule
		"Ignore retries that overlap with the original timing":                 `{"alignment":"align_planned"}`,
		`Align retries by the expression "k > 1 ? planned_at : retry_at + 5m"`: `{"alignment":{"expr":"k > 1 ? planned_at : retry_at + 5m"}}`,
		`Start retries only in the window "FREQ=DAILY; BYHOUR=9"`:              `{"retry_window":"FREQ=DAILY; BYHOUR=9"}`,

		// Kinds of errors
		`Retry only on "B", "a", "C, or D" and net.E errors`:      `{"retry_on":["B","a","C, or D","net.E"]}`,
		"Never retry on permanent errors":                         `{"never_retry":["permanent"]}`,
		"Do not retry on `Gone` or \"Moved\"":                     `{"never_retry":["Gone","Moved"]}`,
		"On \"Gone\", never retry\nOn `Moved`, do not retry":      `{"delays_by_error":{"Gone":"never","Moved":"never"}}`,
		`On "Too busy" errors, wait for the next planned refresh`: `{"delays_by_error":{"Too busy":"next"}}`,
		"Give up": `{"on_exhausted":"give_up"}`,

		// The end
		"Disable auto-refresh":                        `{"on_exhausted":"give_up"}`,
		"Stop refreshing":                             `{"on_exhausted":"give_up"}`,
		"Give up after the final unsuccessful retry.": `{"on_exhausted":"give_up"}`,
		"Give up after the last attempt:\n- Panic":    `{"on_exhausted":"give_up"}`,
		"Wait until the next scheduled refresh, and give up when none is planned":                  `{"on_exhausted":"next_planned"}`,
		"After the last retry, wait for the next planned refresh, or give up if none is scheduled": `{"on_exhausted":"next_planned"}`,
		"Reset `attempt_no`\nWait until the next scheduled refresh":                                `{"on_exhausted":"next_planned"}`,
		"After the final unsuccessful retry, wait until the next scheduled refresh":                `{"on_exhausted":"next_planned"}`,
		"Give up after one week of unsuccessful attempts":                                          `{"give_up_after":"1w"}`,
		"Give up after 36 hours without success":                                                   `{"give_up_after":"1d12h"}`,
		"1. Give up after a week without success:\n  - Disable it\n2. Panic":                       `{"give_up_after":"1w","on_exhausted":"give_up"}`,
		`Give the reason "It failed."`:                                                             `{"disabled_reason":"It failed."}`,
		`Mark the banner with “thumbnail creation failed.”`:                                        `{"on_exhausted":"give_up","disabled_reason":"thumbnail creation failed"}`,
		`Mark it as "pending..."`:                                                                  `{"on_exhausted":"give_up","disabled_reason":"pending..."}`,
		`Disable the model with the reason "It failed."`:                                           `{"on_exhausted":"give_up","disabled_reason":"It failed."}`,
		"Start at most 60 in one minute for each {label.tenant}.":                                  `{"limits":[{"key":"{label.tenant}","rate":"60/1m"}]}`,

		// Keys
		"run at most 4 at the same time and start at most 1 in 1h for each {x}":                       `{"limits":[{"key":"{x}","running":"4","rate":"1/1h"}]}`,
		"Run at most 1 at a time for each {x}. Start at most 9 in 1s for each {y}":                    `{"limits":[{"key":"{x}","running":"1"},{"key":"{y}","rate":"9/1s"}]}`,
		"Probe the open circuit after ten minutes\nOpen the circuit of {policy} after 1 failure of 1": `{"circuit":{"key":"{policy}","open_after":"1 of 1","probe":"10m"}}`,
		"Count only network, http_5xx and timeout errors for the circuit":                             `{"circuit":{"on":["network","http_5xx","timeout"]}}`,
		"Let a server ask to wait for at most 1 day":                                                  `{"max_retry_after":"1d"}`,
		"A server's retry_after may be at most 2 hours":                                               `{"max_retry_after":"2h"}`,
		"Longest wait of a server: 90 minutes":                                                        `{"max_retry_after":"1h30m"}`,
		"Let a `retry_after` close no keys":                                                           `{"retry_after_scope":"model"}`,
		`Stay closed on holidays, "2026" and "all"`:                                                   `{"closed":["holidays","2026","all"]}`,

		// Guards
		"Doubt a refresh with less than half of the usual rows":                                 `{"guard":[{"rows":{"drop":"50%"}}]}`,
		"Doubt a result without rows. Doubt each success without `Bytes`":                       `{"guard":[{"rows":{"min":"1"}},{"bytes":{"min":"1"}}]}`,
		`Doubt a refresh with less than 0.5 "the"`:                                              `{"guard":[{"the":{"min":"0.5"}}]}`,
		"Doubt every refresh with less than 70% of the usual row_count of the last 20 results":  `{"guard":[{"row_count":{"drop":"30%","of":"20"}}]}`,
		"Doubt refresh with more than double the usual rows of the last 5":                      `{"guard":[{"rows":{"rise":"100%","of":"5"}}]}`,
		"Doubt a refresh with over 0.1 percent more rows than usual. Fail each doubted refresh": `{"guard":[{"rows":{"rise":"0.1%"}}],"on_suspect":"fail"}`,
		"Never doubt a refresh. Tell of doubted results. Tell the owner when it is doubted":     `{"guard":[],"on_suspect":"tell","notify":["suspect"]}`,

		// Notices
		"Send no e-mail. Notify the owner of no failure":                                   `{"email":"none","failing_from":"none"}`,
		"Email the customer at owner_email of the payload":                                 `{"email":{"payload":"owner_email"}}`,
		"Email the owner at its label owner.mail when it is disabled":                      `{"notify":["disabled"],"email":{"label":"owner.mail"}}`,
		"Email the customer at {payload: owner_email} that refresh has been disabled.":     `{"notify":["disabled"],"email":{"payload":"owner_email"}}`,
		"Email the owner at ops@example.com when it recovers":                              `{"notify":["recovered"],"email":"ops@example.com"}`,
		"Send an email to the customer at \"a@b.c\" saying that refresh has been disabled": `{"notify":["disabled"],"email":"a@b.c"}`,
		"Tell the owner of the first failure in a row":                                     `{"failing_from":1}`,
		"Email the owner at Mail of the payload of the 12th failure":                       `{"failing_from":12,"email":{"payload":"Mail"}}`,
		"Email the customer that the BigTable refresh has been disabled.":                  `{"notify":["disabled"]}`,
		"Tell the owner when it has recovered":                                             `{"notify":["recovered"]}`,
		"Notify the owner when it recovers\nNotify the owner when it is disabled":          `{"notify":["disabled","recovered"]}`,
		"Send an email to the customer saying that refresh has been disabled":              `{"notify":["disabled"]}`,
	} {
		doc, _, err := Parse(text)
		diff := cmp.Diff(decoded(t, want), doc)
		failIf(t, err != nil || diff != "", "%s: %v, -want +got\n%s", text, err, diff)
	}
}

func TestTheExampleOfEachFormIsOfThatForm(t *testing.T) {
	for _, group := range []struct {
		forms   []form
		grammar []compiled
	}{{asWritten, writtenGrammar()}, {sentences, sentenceGrammar()}, {actions, actionGrammar()}} {
		for _, want := range group.forms {
			if want.example == "" {
				continue
			}
			read, err := readText(want.example)
			stopIf(t, err != nil || len(read) != 1, "%s: %d sentences, %v", want.example, len(read), err)
			text := read[0].text
			if _, action, found := strings.Cut(text, "failure, "); found && &group.forms[0] == &actions[0] {
				text = action
			}
			got := formOf(group.grammar, &read[0], text)
			failIf(t, got != want.example, "%s is read as %v", want.example, got)
		}
	}
}

// formOf returns the example of the form that reads a text.
func formOf(grammar []compiled, s *sentence, text string) string {
	for _, c := range grammar {
		d := readAll("")
		d.err, d.now = nil, s
		d.lines["retry_on"] = 9 // what "everything else" refers to
		if s.text = plain(text); &grammar[0] == &writtenGrammar()[0] {
			s.text = text
		} else if &grammar[0] == &actionGrammar()[0] {
			d.at = 1
		}
		if slots, _, fits := c.take(s.text); fits {
			if c.apply(d, slots); d.known() {
				return c.example
			}
		}
	}
	return ""
}

// A pattern has words, alternatives of words and slots: no sentence that is added may let a word pass that nobody reads.
func TestNoPatternFitsAWordThatItDoesNotName(t *testing.T) {
	plain := regexp.MustCompile(`^(?:[a-z_:0-9' -]|=>|,\??|\(\?:|\(|\||:? ?\)\??|[a-z -]\?|:\?|\\d\+|\[[sz,:]+\]\??|<[a-z, ]+>\??)*$`)
	for _, f := range slices.Concat(asWritten, sentences, actions, retryTraits, circuitTraits) {
		for _, pattern := range betweenPatterns.Split(f.patterns, -1) {
			failIf(t, !plain.MatchString(pattern), "%s has more than words, alternatives and slots", pattern)
			left := plainEnglish().withSlots(pattern)
			failIf(t, strings.ContainsAny(left, "<>") && !strings.Contains(left, " => "), "%s has a slot that there is not: %s", pattern, left)
		}
	}
}

func TestTheFormOfATextDoesNotMatter(t *testing.T) {
	want := decoded(t, `{"timeout":"1h","retries":["0s","1m"],"on_exhausted":"give_up"}`)
	for _, text := range []string{
		"Allow 1 hour\nOn the first failure, retry immediately\nOn the second failure, retry after 1 minute\nPanic",
		"# My policy\n\n* Allow 1 hour.\n* Retry policy:\n\t* On the first failure, retry immediately;\n\t* On the second failure, retry after 1 minute.\n* **Panic**!\r\n",
		"1) ALLOW 1 HOUR\n2) on the   FIRST failure: retry immediately\n10) On the 2nd failure retry after `1 minute`\n11) panic",
		"Allow 1 hour. On the first failure, retry immediately. On the second failure, retry after 1 minute. Panic.",
		"```\n+ Allow 1 hour:\n• On the first failure:\n   • Retry immediately\n• On the second failure:\n   1. Retry after 1 minute\n• Panic\n```",
	} {
		doc, _, err := Parse(text)
		diff := cmp.Diff(want, doc)
		failIf(t, err != nil || diff != "", "%s: %v, -want +got\n%s", text, err, diff)
	}
}

func TestAFieldLeadsBackToItsLine(t *testing.T) {
	_, source, err := Parse("# heading\nRefresh by the rule FREQ=DAILY (Nowhere/Land)\n\nRetry policy:\n- On the second failure, retry after 1 minute\n" +
		"- On the first failure, retry now\n- On \"Gone\" errors, never retry\n- Panic")
	must(t, err)
	for field, want := range map[string]int{
		"rrule": 2, "rrule line 2": 2, "rrule BYHOUR": 2, "timezone": 2, "retries": 6, "retries[0]": 6, "retries[1]": 5, "retries[1].delay": 5,
		"delays_by_error.Gone": 7, "delays_by_error": 7, "on_exhausted": 8, "timeout": 0, "": 0,
	} {
		got := source.Line(field)
		failIf(t, got != want, "%s: line %d, want %d", field, got, want)
	}
}

func TestAnUnknownSentenceIsRefusedWithItsLineAndTheNearestOne(t *testing.T) {
	for text, want := range map[string]string{
		"Panic\n\n# heading\n- On the sekond failure, retry after 1 minute.": `line 4: expected a known sentence, found "On the sekond failure, retry after 1 minute" ("sekond" is not understood there); nearest: On the second failure, retry after 1 minute`,
		"Alow 1 hour to complete":                    `line 1: expected a known sentence, found "Alow 1 hour to complete" ("alow" is not understood there); nearest: Allow 1 hour to complete`,
		"Pannic":                                     `line 1: expected a known sentence, found "Pannic" ("pannic" is not understood there); nearest: Panic`,
		"asdf qwer":                                  `line 1: expected a known sentence such as "Refresh the model every 2 hours" or "On the first failure, retry immediately", found "asdf qwer"`,
		"Retry after 1 minute":                       `line 1: expected a known sentence, found "Retry after 1 minute"; nearest: On failure, retry after 5 minutes`,
		"On the first failure, retry never":          `line 1: expected a known sentence, found "On the first failure, retry never" ("never" is not understood there); nearest: On the first failure, retry immediately`,
		"On the 22st failure, retry immediately":     `line 1: expected a known sentence, found "On the 22st failure, retry immediately"; nearest: On the first failure, retry immediately`,
		"Doubt a refresh without mercy":              `line 1: expected a number that a success reports: rows, bytes, a name with _, or one in quotes, found "mercy"`,
		"Doubt a refresh with odd rows":              `line 1: expected a known sentence, found "Doubt a refresh with odd rows" ("odd" is not understood there); nearest: Doubt a refresh with more than 100 rows`,
		"On Gone errors, give up":                    `line 1: expected an error type: a known one such as timeout, one in the form of ValidationError or http_503, or one in quotes, found "Gone errors"`,
		"Up to an age of 1 day, panic":               `line 1: expected a known sentence, found "Up to an age of 1 day, panic" ("panic" is not understood there); nearest: Up to an age of 1 day, retry after 5 minutes`,
		"- Give up after 1 hour of \"unsuccessful\"": `line 1: expected a known sentence, found "Give up after 1 hour of \"unsuccessful\""; nearest: Give up after one week of unsuccessful attempts`,
	} {
		_, _, err := Parse(text)
		failIf(t, err == nil || err.Error() != want, "%s:\n got %v\nwant %s", text, err, want)
	}
}

func TestAContradictionIsRefusedWithBothLines(t *testing.T) {
	for text, want := range map[string]string{
		"Allow 1 hour\nPanic\nAllow 1 hour to complete":                           `line 3: expected one sentence about timeout, which is in line 1, found a second: "Allow 1 hour to complete"`,
		"Use the time zone UTC\nRefresh by the rule FREQ=DAILY (UTC)":             `line 2: expected one sentence about timezone, which is in line 1, found a second: "Refresh by the rule FREQ=DAILY (UTC)"`,
		"On `Gone` errors, retry immediately\nOn \"Gone\", never retry":           `line 2: expected one sentence about it, which is in line 1, found a second: "On \"Gone\", never retry"`,
		"On the first failure, retry now\nOn the 1st failure, give up":            `line 2: expected one sentence about the first failure, which is in line 1, found a second: "On the 1st failure, give up"`,
		"On the first failure, retry now and retry after 1 minute":                `line 1: expected only one of a retry, a wait for the next scheduled refresh, or giving up after the first failure, found more than one`,
		"Do not retry\nOn the first failure, retry now":                           `line 2: expected one sentence about retries, which is in line 1, found a second: "On the first failure, retry now"`,
		"Do not retry\nWait 5 minutes between retries":                            `line 2: expected one sentence about retries, which is in line 1, found a second: "Wait 5 minutes between retries"`,
		"Allow 1 hour\nWait 5 minutes between retries":                            `line 2: expected how many retries there are, such as "Retry up to 3 times", found nothing of that`,
		"Retry with fixed delays\nUp to an age of 1 day, retry after 1 minute":    `line 2: expected one sentence about retries, which is in line 1, found a second: "Up to an age of 1 day, retry after 1 minute"`,
		"On the first failure, wait until the next scheduled refresh and give up": `line 1: expected only one of a retry, a wait for the next scheduled refresh, or giving up after the first failure, found more than one`,
		"Notify nobody\nEmail the customer that it is disabled":                   `line 2: expected one sentence about notify, which is in line 1, found a second: "Email the customer that it is disabled"`,
		"Set no limits\nRun at most 1 at a time for each {x}":                     `line 2: expected one sentence about limits, which is in line 1, found a second: "Run at most 1 at a time for each {x}"`,
		"Panic\nWait until the next scheduled refresh":                            `line 2: expected giving up after the last retry, as line 1 says, found "Wait until the next scheduled refresh"`,
		"Give up after the last retry:\n- Reset attempt_no":                       `line 2: expected giving up after the last retry, as line 1 says, found "Reset attempt_no"`,
		"Wait until the next scheduled refresh\nOn the first failure, give up":    `line 2: expected no failure after line 1, which says what follows the last one, found "On the first failure, give up"`,
		"Doubt no refresh\nDoubt a refresh without rows":                          `line 2: expected one sentence about guard, which is in line 1, found a second: "Doubt a refresh without rows"`,
		"Hold a doubted refresh\nFail doubted refreshes":                          `line 2: expected one sentence about on_suspect, which is in line 1, found a second: "Fail doubted refreshes"`,
		"Open no circuit\nProbe an open circuit after 5 minutes":                  `line 2: expected one sentence about circuit, which is in line 1, found a second: "Probe an open circuit after 5 minutes"`,
		"Count only A_B for the circuit\nCount only C_D for the circuit":          `line 2: expected one sentence about it, which is in line 1, found a second: "Count only C_D for the circuit"`,
	} {
		_, _, err := Parse(text)
		failIf(t, err == nil || err.Error() != want, "%s:\n got %v\nwant %s", text, err, want)
	}
}

func TestTheFailuresFollowEachOtherAndTheLastIsTheOneAfterTheLastRetry(t *testing.T) {
	const number = ", because the failure after the last retry has the next number"
	for text, want := range map[string]string{
		"On the first failure, retry now\nOn the third failure, retry now":                                   `line 2: expected the second failure` + number + `, found the third`,
		"On the third failure, retry now":                                                                    `line 1: expected the first failure` + number + `, found the third`,
		"On the first failure, retry now\nPanic\nOn the second failure, retry now":                           `line 3: expected no failure after line 2, which says what follows the last one, found "On the second failure, retry now"`,
		"On the first failure, retry now\nOn the fourth failure, give up\nPanic":                             `line 2: expected the second failure` + number + `, found the fourth`,
		"On the first failure, give up\nOn the second failure, retry now":                                    `line 2: expected nothing after the first failure, which line 1 makes the last, found the second`,
		"On the first failure:\nAllow 1 hour":                                                                `line 1: expected a retry, a wait for the next scheduled refresh, or giving up after the first failure, found nothing of that`,
		"Retry up to 5 times with fixed delays\nOn the fifth failure, give up":                               `line 2: expected the sixth failure` + number + `, found the fifth`,
		"Retry up to 1 times with fixed delays\nOn the second failure, give up\nOn the third failure, panic": `line 3: expected nothing after the second failure, which line 2 makes the last, found the third`,
		"Retry with fixed delays\nOn the 5th failure, give up with \"x y\"":                                  `line 2: expected no number of a failure, because line 1 does not say how many retries there are, found "On the 5th failure, give up with \"x y\""`,
		"Retry with fixed delays\nOn the fifth failure, give up":                                             `line 2: expected no number of a failure, because line 1 does not say how many retries there are, found "On the fifth failure, give up"`,
	} {
		_, _, err := Parse(text)
		failIf(t, err == nil || err.Error() != want, "%s:\n got %v\nwant %s", text, err, want)
	}
}

func TestWhatStandsInASentenceIsRefusedWithItsLine(t *testing.T) {
	for text, want := range map[string]string{
		"Panic\nAllow 11 years":                      "line 2: timeout: expected a duration such as",
		"On the first failure, retry after 1 mintue": `line 1: retries[0]: expected a duration such as "90s", "1h30m", "PT5M" or "10 minutes", found "1 mintue" (the unit "mintue" is not known)`,
		"On `Gone` errors, retry after 1 mintue":     `line 1: delays_by_error.Gone: expected a duration`,
		"Start at most 9 in 1 mintue for each {x}":   `line 1: limits[0].rate: expected a duration`,
		"Count only every error for the circuit":     "line 1: expected an error type: a known one",
		"Run at most 4 at a time for each host":      "nearest: Run at most 4 at a time for each {host(input_url)}",
		// No part of a schedule is taken for a part of the subject
		`Refresh on weekdays the "big" model every 2 hours`: "line 1: rrule: expected",
		"Refresh the model every 2 hours except on purpose": "line 1: rrule: expected",
		"Send a request to us on Mondays every 2 hours":     "line 1: expected a known sentence",
		"On an error, retry after 1 minute":                 "line 1: expected an error type: a known one",
		`Give the reason "it failed`:                        `line 1: expected a text in quotes`,
		`Give the reason “it failed`:                        `line 1: expected a text in quotes`,
		"Refresh also by the rule EXDATE:20260101T000000":   `line 1: expected a sentence such as "Refresh the model by the rule FREQ=DAILY" before it`,
		"":                                `expected at least one sentence such as "Refresh the model every 2 hours", found nothing`,
		"# only a heading\n-\n \n":        `expected at least one sentence`,
		strings.Repeat("\n", 1000):        "expected at most 1000 lines, found 1001",
		strings.Repeat("x", 262145):       "expected at most 262144 bytes, found 262145",
		"Refresh the model every 2 hoors": "line 1: rrule: expected",
	} {
		_, _, err := Parse(text)
		failIf(t, err == nil || !strings.Contains(err.Error(), want), "%.80s:\n got %v\nwant %s", text, err, want)
		located := (*Error)(nil)
		failIf(t, !errors.As(err, &located) || !errors.As(err, new(*document.Error)), "%.80s: %T is no *Error with a *document.Error", text, err)
	}
}

// TestAHostileTextIsRefusedSoon has no clock: a slow comparison would take minutes, and the time limit of the test run ends it.
func TestAHostileTextIsRefusedSoon(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("On the first failure ", 3000), strings.Repeat("panic and ", 6000), "On the first failure, " + strings.Repeat("a and ", 9000),
		"Retry only on " + strings.Repeat("a, ", 20000) + "!!", strings.Repeat(`"" `, 20000), strings.Repeat("x", 65000), "Refresh " + strings.Repeat("every ", 10000),
		strings.Repeat("- Reset attempt_no:\n", 1000), "Allow " + strings.Repeat("1 hour ", 9000), strings.Repeat("Panic. ", 9000) + "x",
		strings.Repeat(strings.Repeat("Panic, ", 9)+"panic\n", 999) + "x",
	} {
		doc, _, err := Parse(text)
		failIf(t, err == nil && len(text) > 20000 && !strings.HasPrefix(text, "- Reset"), "%.40s… was accepted: %v", text, doc)
	}
}
