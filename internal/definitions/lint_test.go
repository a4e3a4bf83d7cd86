package definitions

import (
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/policy"
)

// lintText reads the one policy of a file, and the warnings about it.
func lintText(t *testing.T, name, text string) (Document, policy.Policy, []policy.Warning) {
	t.Helper()
	docs, err := ReadPolicies(name, strings.NewReader(text))
	if err != nil || len(docs) != 1 {
		t.Fatal(text, err)
	}
	p, err := policy.Parse(docs[0].Value)
	if err != nil {
		t.Fatal(text, err)
	}
	return docs[0], p, LintPolicy(docs[0], p, time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC))
}

func TestAPolicyThatSaysEmailAndNotToWhomIsWarnedOf(t *testing.T) {
	for text, want := range map[string]string{
		"Allow 1 hour.\nOn the first failure:\n- Email the customer that the refresh has been disabled": "p.txt line 3: notify: says e-mail, and not to whom",
		"Allow 1 hour. Email the owner when it recovers":                                                "p.txt line 1: notify: says e-mail, and not to whom",
		"Allow 1 hour. Notify the owner when it is disabled":                                            "",
		"Allow 1 hour. Email the customer at owner_email of the payload that the refresh is disabled":   "",
		"Allow 1 hour. Email the owner when it is disabled. Email the owner at the label owner":         "",
	} {
		doc, _, warnings := lintText(t, "p.txt", text)
		var told []string
		for _, w := range warnings {
			told = append(told, doc.Position(w.Field)+": "+w.String())
		}
		got := strings.Join(told, "; ")
		failIf(t, want == "" && got != "" || !strings.HasPrefix(got, want), "%s: got %q, want %q", text, got, want)
	}
}

func TestAPolicyThatLeavesItsEndOpenIsToldWhichItGets(t *testing.T) {
	for text, want := range map[string]policy.OnExhausted{
		"timeout: 1h\nretry_intervals: [0, PT5M]":         policy.GiveUp,
		"timeout: 1h\nretries: 10 5s":                     policy.GiveUp,
		"timeout: 1h\nretries: 10 5s\non_exhausted: null": policy.GiveUp,

		// Nothing is left open, or the usual end is taken, which is told as what comes from the policy default
		"timeout: 1h\nretries: [0, 5m]":                        "",
		"timeout: 1h\nretries: [0, 5m]\non_exhausted: give_up": "",
		"timeout: 1h\nretries: []":                             "",
		"timeout: 1h":                                          "",
	} {
		_, p, warnings := lintText(t, "p.yaml", text)
		var told string
		for _, w := range warnings {
			if w.Field == "on_exhausted" {
				told += w.Text
			}
		}
		failIf(t, want == "" && told != "" || want != "" && (p.OnExhausted != want || !strings.HasPrefix(told, "is missing: "+string(want))),
			"%s: it ends in %s, told %q, want %q", text, p.OnExhausted, told, want)
	}
}

func TestAnAnnotationAloneIsAPolicy(t *testing.T) {
	docs, err := ReadPolicies("retry.txt", strings.NewReader("# of the verb\n//ftl:retry 10 5s\n"))
	if err != nil || len(docs) != 1 {
		t.Fatal(docs, err)
	}
	p, err := policy.Parse(docs[0].Value)
	failIf(t, err != nil || p.MaxRetries() != 10 || p.OnExhausted != policy.GiveUp, "read as %+v, %v", p, err)
	for _, text := range []string{"//ftl:retry", "//ftl:retry soon", "//ftl:retry 10 5s 10m 1h", "//ftl:retry 10 5s\nretries: [0]"} {
		docs, err := ReadPolicies("retry.txt", strings.NewReader(text))
		if err == nil {
			_, err = policy.Parse(docs[0].Value)
		}
		failIf(t, err == nil, "%s: want it refused", text)
	}
}

func TestTheCanonicalYAMLOfAPolicyIsReadBackToTheSamePolicy(t *testing.T) {
	for _, text := range []string{ // which between them use every field and every form of retries
		`{"name":"a","timeout":"none","retries":{"strategy":"fibonacci","base":"1m","cap":"1h"},"give_up_after":"1w","jitter":0}`,
		`{"name":"b","rrule":"RRULE:FREQ=DAILY;BYHOUR=6\nEXDATE:20260101T060000","timezone":"Europe/Berlin","dtstart":"2026-01-01","timeout":"1h"}`,
		`{"name":"c","timeout":"1s","retries":{"by_age":[{"up_to":"1d","delay":"5m"},{"up_to":"1w","delay":"next"}]},"retry_on":[]}`,
		`{"name":"d","timeout":"1m","retries":{"expr":"k < 3 and reason contains \"no: #'x'\" ? '10m' : false"},"alignment":"whichever_first"}`,
		`{"name":"e","timeout":"1m","retries":"10 5s 10m","never_retry":["permanent","yes","1","null","a: b","# no"],"notify":[]}`,
		`{"name":"true","timeout":"1m","retries":[0,"next"],"delays_by_error":{"1":"1h","Gone":"never","- x":"next"},"notify":["recovered"]}`,
		`{"name":"2026-01-01","timeout":"1m","retry_window":"FREQ=DAILY;BYHOUR=9,10","misfire":"run_if_younger_than 1h","spread":"10m","queue_timeout":"1m"}`,
		`{"name":"fleet","limits":[{"key":"{host(input_url)}","running":4,"rate":"60/1m"},{"key":"{label.tenant}","running":50}],"retry_after_scope":"key","closed":["2026","b"],` +
			`"circuit":{"key":"{policy}","open_after":"5 of 10","on":["429","network"],"probe":"1m"},"fresh_within":"26h","warn_within":"24h"}`,
		`{"name":"h","timeout":"1m","retries":{"strategy":"exponential","base":"1m","factor":1.5,"count":3},"jitter":0.01,"disabled_reason":"no, \"really\": 'never' # - {x}"}`,
	} {
		_, p, _ := lintText(t, "p.json", text)
		var canonical, again strings.Builder
		must(t, WriteYAML(&canonical, p))
		_, back, _ := lintText(t, "p.yaml", canonical.String())
		err := WriteYAML(&again, back)
		failIf(t, err != nil || canonical.String() != again.String() || !back.Equal(p),
			"expected the same policy, found %v\n%s\nfor\n%s", err, again.String(), canonical.String())
	}
}
