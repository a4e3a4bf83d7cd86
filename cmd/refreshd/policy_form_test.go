package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

// manyFormed are policies that between them use every field and every form of retries.
var manyFormed = []string{
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
}

func TestTheCanonicalYAMLOfAPolicyIsReadBackToTheSamePolicy(t *testing.T) {
	for _, text := range manyFormed {
		c := at(t, testkit.Miniredis(t))
		c.in = text
		c.do("policy", "put", "-")
		canonical := c.do("policy", "get", "-")
		c.in = canonical
		if put := c.do("policy", "put", "-"); !strings.HasPrefix(put, "unchanged") {
			t.Errorf("expected no change, found %s for\n%s", put, canonical)
		}
		expectEqualText(t, canonical, c.do("policy", "get", "-"))
		c.in = c.do("policy", "get", "-", "-o", "json")
		expectEqualText(t, canonical, c.do("policy", "get", "-"))
	}
}

func TestTheJSONOfAPolicyCommandAlwaysHasEveryField(t *testing.T) {
	server := testkit.Miniredis(t)
	c := at(t, server)
	users(c, server)
	fixture.Live(t, server).Redis.HSet(t.Context(), "bigtables:policies", "broken", "{")
	yaml := file(t, "policy.yaml", nightlyYAML+"---\nname: other\n")
	outcome := []string{"completed", "name", "plan", "result", "warnings"}
	for _, test := range []struct {
		fields []string
		args   []string
	}{
		{outcome, []string{"check", yaml}},
		{outcome, []string{"put", yaml, "--plan"}},
		{outcome, []string{"put", yaml}},
		{outcome, []string{"rm", "other"}},
		{[]string{"name", "policy", "readable"}, []string{"ls"}},
		{[]string{"english", "name"}, []string{"english", "nightly"}},
		{[]string{"differences", "plan"}, []string{"diff", "nightly", "default"}},
		{[]string{"alignment", "circuit", "closed", "delays_by_error", "disabled_reason", "email", "failing_from", "fresh_within", "give_up_after", "jitter", "limits", "misfire", "name", "never_retry",
			"notify", "on_exhausted", "queue_timeout", "retries", "retry_after_scope", "retry_window", "rrule", "spread", "timeout", "warn_within"}, []string{"get", "nightly"}},
	} {
		decoder := json.NewDecoder(strings.NewReader(c.do(append([]string{"policy", "-o", "json"}, test.args...)...)))
		count := 0
		for ; decoder.More(); count++ {
			var object map[string]any
			if err := decoder.Decode(&object); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.fields, slices.Sorted(maps.Keys(object))); diff != "" {
				t.Errorf("%v: -want +got\n%s", test.args, diff)
			}
			if warnings, found := object["warnings"]; found && warnings == nil {
				t.Errorf("%v: expected a list of warnings, found null", test.args)
			}
		}
		if count == 0 {
			t.Errorf("%v: expected objects, found none", test.args)
		}
	}
}

func TestAStoredPolicyThatCannotBeReadIsListedAsSuchAndCanBeReplaced(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		c := at(t, server)
		c.in = nightlyYAML
		c.do("policy", "put", "-")
		for name, text := range map[string]string{"broken": "{", "newer": `{"timeout":"1h","colour":"red"}`} {
			fixture.Live(t, server).Redis.HSet(t.Context(), "bigtables:policies", name, text)
		}
		expectContains(t, c.do("policy", "ls"), "broken   cannot be read", "newer    cannot be read", "nightly  30m")
		for i, object := range c.objects(c.do("policy", "ls", "-o", "json")) {
			name := []string{"broken", "default", "newer", "nightly"}[i]
			if readable := name == "nightly" || name == "default"; object["name"] != name || object["readable"] != readable || (object["policy"] != nil) != readable {
				t.Errorf("expected %s, found %v", name, object)
			}
		}
		expectContains(t, c.fail(exitFailed, "policy", "get", "broken"), "stored policy broken: expected JSON: ")
		expectContains(t, c.fail(exitFailed, "policy", "english", "newer"), "stored policy newer: colour: expected one of name")
		for _, name := range []string{"broken", "newer"} {
			expectContains(t, c.do("policy", "put", "-", "--name", name), name)
			expectContains(t, c.do("policy", "get", name), "timeout: 30m\n")
		}
	})
}

func TestACheckWarnsAndFailsOnlyWhenAsked(t *testing.T) {
	c := at(t, testkit.Miniredis(t))
	path := file(t, "policy.yaml", "name: tight\nrrule: FREQ=HOURLY;INTERVAL=2\ntimeout: 2h\nretries: [0s]\n---\nname: open\n")
	warned := "policy.yaml line 3: timeout: 2h is not shorter than the interval of 2h"
	code, stdout, stderr := c.run("policy", "check", path)
	if code != exitDone {
		t.Errorf("expected exit code 0, found %d", code)
	}
	expectEqualText(t, "ok         tight\nok         open\n", stdout)
	expectContains(t, stderr, "warning: ", warned, "policy.yaml line 6: timeout: is missing: 10m, that of the policy default\n")
	expectContains(t, c.fail(exitFailed, "policy", "check", path, "--strict"), warned)

	_, stdout, stderr = c.run("policy", "put", path, "-o", "json")
	expectContains(t, stderr, warned)
	told := c.objects(stdout)[0]["warnings"].([]any)
	if len(told) != 1 || !strings.Contains(told[0].(string), warned) {
		t.Errorf("expected the warning in the outcome, found %v", told)
	}
	c.do("policy", "check", file(t, "good.yaml", nightlyYAML), "--strict")
}

func TestADefaultThatAnotherNameOfDocument004BringsIsNotMissing(t *testing.T) {
	c := at(t, testkit.Miniredis(t))
	c.in = `{"name":"a","maxRetries":3,"timeout":"1m"}`
	c.do("policy", "check", "-", "--strict")
}

func TestWhatAPolicySaysDoesNotReachTheTerminalAsControlCharacters(t *testing.T) {
	server := testkit.Miniredis(t)
	c := at(t, server)
	const evil = "\u001b[31m\u009b\u0007\u202e"
	fine := map[string]any{"timeout": "1m", "retries": map[string]any{"expr": `reason == "\u001b[31m" ? 1 : false`}, "never_retry": []string{"größer"}}
	stored, err := json.Marshal(fine)
	if err != nil {
		t.Fatal(err)
	}
	client := fixture.Live(t, server).Redis
	client.HSet(t.Context(), "bigtables:policies", "evil"+evil, `{"disabled_reason":"`+evil+`","timeout":"1h"}`, "fine", stored)
	var texts []string
	see := func(args ...string) {
		_, stdout, stderr := c.run(append([]string{"policy"}, args...)...)
		texts = append(texts, stdout, stderr)
	}
	for _, field := range []string{"name", "rrule", "timezone", "timeout", "retries", "alignment", "misfire", "disabled_reason", "expr", evil} {
		text, err := json.Marshal(map[string]any{field: evil})
		if err != nil {
			t.Fatal(err)
		}
		c.in = string(text)
		see("put", "-")
		see("check", file(t, "policy", "Allow 1 hour to complete\nRetry "+evil))
	}
	see("ls")
	see("get", "evil"+evil)
	see("put", "-", "--name", evil)
	for _, command := range []string{"get", "english", "check"} {
		see(command, "fine")
		if text := texts[len(texts)-2]; !strings.Contains(text, "fine") {
			t.Errorf("expected %s to show the policy, found %q", command, text)
		}
	}
	see("diff", "fine", "default")
	see("diff", "default", "fine")
	for _, text := range texts {
		for _, r := range text {
			if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
				t.Errorf("found %q in %q", r, text)
				break
			}
		}
	}
}
