package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
)

// The same policy in each of its forms, and in its canonical one.
const (
	nightlyYAML = "name: nightly\nrrule: FREQ=DAILY;BYHOUR=3;BYMINUTE=0;BYSECOND=0\ntimeout: 30 minutes\nretries: [0, PT5M]\n"
	nightlyJSON = `{"name":"nightly","rrule":"FREQ=DAILY;BYHOUR=3;BYMINUTE=0;BYSECOND=0","timeout":"30m","retries":["0s","5m"]}`

	nightlyEnglish = "This policy is called nightly\nRefresh the model every day at 3 AM\nAllow 30 minutes to complete\n" +
		"Retry policy:\n- On the first failure, retry immediately.\n- On the second failure, retry after 5 minutes.\n"

	nightlyCanonical = "name: nightly\nrrule: FREQ=DAILY;BYHOUR=3;BYMINUTE=0;BYSECOND=0\ntimeout: 30m\nqueue_timeout: none\nsilent_after: none\n" +
		"retries: [0s, 5m]\njitter: 0\nalignment: align_planned\non_exhausted: next_planned\n" + restCanonical
	restCanonical = "give_up_after: none\nnever_retry: []\ndelays_by_error: {}\nretry_window: none\nmisfire: run_once\nspread: none\n" +
		"limits: []\ncircuit: none\nretry_after_scope: auto\nmax_retry_after: 1d\nclosed: []\nfresh_within: none\nwarn_within: none\n" +
		"guard: []\non_suspect: tell\nnotify: [disabled, recovered, stale, fresh, suspect]\nfailing_from: none\nemail: none\ndisabled_reason: \"\"\n"
)

func expectEqualText(t *testing.T, want, got string) {
	t.Helper()
	equal(t, want, got)
}

func TestAPolicyIsTheSameInEachFormFromAFileFromStandardInputAndFromRedis(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		c, told := at(t, server), "created    nightly\n"
		for _, text := range []string{nightlyYAML, nightlyJSON, nightlyEnglish, "\xEF\xBB\xBF" + nightlyYAML} {
			for _, from := range []string{file(t, "policy", text), "-"} {
				before := server.Dump(t)
				c.in = text
				expectEqualText(t, nightlyCanonical, c.do("policy", "get", from))
				expectEqualText(t, told, c.do("policy", "put", from))
				expectEqualText(t, nightlyCanonical, c.do("policy", "get", "nightly"))
				diff := cmp.Diff(before, server.Dump(t))
				failIf(t, diff != "" && told != "created    nightly\n", "%v", diff)
				told = "unchanged  nightly\n"
			}
		}
		expectContains(t, c.do("policy", "ls"), "nightly  30m      2        FREQ=DAILY;BYHOUR=3;BYMINUTE=0;BYSECOND=0\n")
		expectEqualText(t, "updated    nightly\n", c.policy(strings.Replace(nightlyYAML, "30", "40", 1)))
		expectContains(t, c.do("policy", "get", "nightly"), "timeout: 40m\n")
	})
}

func TestManyPoliciesOfOneFileAreStoredEachUnderItsNameAndOneUnderAnotherOnRequest(t *testing.T) {
	c := at(t, testkit.Miniredis(t))
	expectEqualText(t, "created    a\ncreated    b\n", c.policy("name: a\ntimeout: 1m\n---\n# nothing\n---\nname: b\ntimeout: 2m\n"))
	for _, text := range []string{
		"- name: a\n  timeout: 1m\n- name: b\n  timeout: 2m\n", `[{"name":"a","timeout":"1m"},{"name":"b","timeout":"2m"}]`, "[{name: a, timeout: 1m}]\n---\n{name: b, timeout: 2m}\n",
		c.do("policy", "get", "-"), c.do("policy", "get", "a") + "---\n" + c.do("policy", "get", "b"),
	} {
		expectEqualText(t, "unchanged  a\nunchanged  b\n", c.policy(text))
	}
	expectContains(t, c.fail(exitUsage, "policy", "put", "-", "--name", "c"), "--name: expected one policy to be called so, found 2")
	expectContains(t, c.fail(exitFailed, "policy", "diff", "-", "default"), "-: expected one policy, found 2")

	expectEqualText(t, "created    weekly\n", c.policy(nightlyYAML, "--name", "weekly"))
	expectEqualText(t, "created    monthly\n", c.do("policy", "put", "weekly", "--name", "monthly"))
	expectEqualText(t, strings.Replace(nightlyCanonical, "nightly", "monthly", 1), c.do("policy", "get", "monthly"))
}

func TestAPolicyThatIsRefusedIsNamedWithItsPlaceAndNoneOfItsFileIsStored(t *testing.T) {
	server := testkit.Miniredis(t)
	c := at(t, server)
	for text, want := range map[string]string{
		"name: b\ntimeout: soon\n":                           `policy.yaml line 5: timeout: expected a duration`,
		"timeout: 1m\n":                                      "policy.yaml line 4: name: expected 1-200 letters",
		"timeout: 1m\nname: inline-0\n":                      `policy.yaml line 5: name: expected 1-200 letters`,
		"name: \"b\n":                                        "policy.yaml line 4: ",
		"b\n":                                                "policy.yaml line 4: expected an object with name",
		"name: b\ntries: 3\n":                                "policy.yaml line 5: tries: expected one of name, rrule",
		"name: b\nname: c\n":                                 "policy.yaml line 4: ",
		"name: b\nretries:\n  - 0s\n  - 1x\n":                `policy.yaml line 7: retries[1]: expected a duration such as`,
		"name: b\n\nrrule: FREQ=DAILY;BYHOUR=25\n":           `policy.yaml line 6: rrule BYHOUR: expected`,
		"name: b\nretries:\n  expr: |\n    k <\n":            `policy.yaml line 6: retries.expr: expected an expression over k`,
		"name: b\ndelays_by_error:\n  A: 1m\n  B: x\n":       `policy.yaml line 7: delays_by_error.B: expected a duration such as`,
		"name: b\nretry_on: [A]\nnever_retry: [B]\n":         `policy.yaml line 6: never_retry: expected retry_on or never_retry, found both`,
		"name: b\nretries:\n  strategy: cubic\n  base: 1m\n": `policy.yaml line 6: retries.strategy: expected fixed or linear`,
	} {
		path := file(t, "policy.yaml", "name: a\ntimeout: 1m\n---\n"+text)
		expectContains(t, c.fail(exitFailed, "policy", "put", path), want)
		if !strings.Contains(want, " name: ") { // which only a save needs
			for _, args := range [][]string{{"check", path}, {"get", path}, {"english", path}, {"diff", path, path}} {
				expectContains(t, c.fail(exitFailed, append([]string{"policy"}, args...)...), want)
			}
		}
		dump := server.Dump(t)
		failIf(t, len(dump) > 0, "expected nothing stored, found %v", dump)
	}
	for text, want := range map[string]string{
		"\n# nothing\n": "standard input: expected a policy, found nothing", `[{"name":"a"},{"name":"b"`: "standard input line 1: ",
		"Allow 1 hour to complete\nRetry nicely\n":                `standard input line 2: expected a known sentence, found "Retry nicely"`,
		"Allow 1 hour to complete\n\nRefresh at half past seldom": "standard input line 3: ",
	} {
		c.in = text
		for _, command := range []string{"put", "check", "get", "english", "diff"} {
			expectContains(t, c.fail(exitFailed, slices.Concat([]string{"policy", command, "-"}, map[string][]string{"diff": {"default"}}[command])...), want)
		}
	}
}

// users saves models that use the policy nightly: one waits, one is due, one runs, one is disabled; another one is not theirs.
func users(c *console, server *testkit.Server) {
	c.t.Helper()
	c.policy(nightlyYAML)
	c.put("uid: waits\npolicy: nightly\n---\nuid: due\npolicy: nightly\nrefresh: now\n---\nuid: runs\npolicy: nightly\nrefresh: now\n" +
		"---\nuid: rests\npolicy: nightly\n---\nuid: other\nrrule: FREQ=DAILY\n")
	c.do("model", "disable", "rests")
	q := fixture.Live(c.t, server)
	record := recordOf(q, "runs")
	now := record.RefreshAt.Add(time.Second)
	q.Commit(now, record.Decide(record.Start(now, "a1"), now))
}

func TestAPlanStoresNothingAndCountsTheModelsThatItConcerns(t *testing.T) {
	onEach(t, func(t *testing.T, c *console, server *testkit.Server) {
		users(c, server)
		before := server.Dump(t)
		for change, changed := range map[string]int{
			"timeout: 40m": 4, "timeout: 30m": 0, "timeout: 30m\nnotify: []": 0, "timeout: 30m\nretries: [1m, 5m]": 4,
			"timeout: 30m\nrrule: FREQ=DAILY;BYHOUR=4;BYMINUTE=0;BYSECOND=0": 4,
		} {
			c.in = "name: nightly\n" + change + "\n"
			for name, value := range map[string]string{"rrule": "FREQ=DAILY;BYHOUR=3;BYMINUTE=0;BYSECOND=0", "retries": "[0, 5m]"} {
				if !strings.Contains(change, name) {
					c.in += name + ": " + value + "\n"
				}
			}
			anew, text, starts := 0.0, "None is planned anew.", []any{}
			if strings.Contains(change, "rrule") { // the one that waits
				at := tomorrow(t, server, 4)
				anew, text, starts = 1, "Planned anew: 1, first at "+strings.NewReplacer("T", " ", ".000Z", " UTC").Replace(at)+".", []any{at}
			}
			want := map[string]any{"models": 4.0, "changed": float64(changed), "due_at_once": 1.0, "running": 1.0, "disabled": 1.0, "replanned": anew, "first_starts": starts}
			diff := cmp.Diff(want, c.object("policy", "put", "-", "--plan")["plan"])
			failIf(t, diff != "", "%s: -want +got\n%s", change, diff)
			expectContains(t, c.do("policy", "put", "-", "--plan"), "planned    nightly\n"+
				fmt.Sprintf("4 models use it, %d would decide otherwise. Due at once: 1. Running: 1. Disabled: 1. %s The others decide at their next refresh.\n", changed, text))
		}
		equal(t, before, server.Dump(t))
	})
}

// tomorrow is when that hour comes next, on the clock of the server.
func tomorrow(t *testing.T, server *testkit.Server, hour int) string {
	t.Helper()
	now := nowOf(fixture.Live(t, server))
	at := time.Date(now.Year(), now.Month(), now.Day(), hour, 0, 0, 0, time.UTC)
	if !at.After(now) {
		at = at.AddDate(0, 0, 1)
	}
	return model.FormatTime(at)
}

func TestAPlanNamesTheFirstStartsAndStatsTellHowFarTheyAre(t *testing.T) {
	onEach(t, func(t *testing.T, c *console, server *testkit.Server) {
		c.policy("name: feeds\nrrule: FREQ=YEARLY\n")
		models := ""
		for _, zone := range []string{"UTC", "Asia/Tokyo", "Asia/Dhaka", "Africa/Cairo", "Africa/Lagos"} {
			models += "---\nuid: " + zone + "\npolicy: feeds\ntimezone: " + zone + "\n"
		}
		c.put(models)
		server.Client(t).Del(t.Context(), "bigtables:bulks")

		c.in = "name: feeds\nrrule: FREQ=DAILY\n"
		plan := c.object("policy", "put", "-", "--plan")["plan"].(map[string]any)
		starts := plan["first_starts"].([]any)
		if plan["replanned"] != 5.0 || len(starts) != 3 || !slices.IsSortedFunc(starts, func(a, b any) int { return strings.Compare(a.(string), b.(string)) }) {
			t.Errorf("expected five models planned anew, and the first three of their starts, found %v", plan)
		}
		stats := c.do("stats")
		failIf(t, strings.Contains(stats, "replanning"), "expected nothing planned anew yet, found %s", stats)
		c.do("policy", "put", "-")
		expectContains(t, c.do("stats"), "feeds: 0 models seen, 0 changed, since 20")
		walks := c.object("stats")["replanning"].([]any)
		failIf(t, len(walks) != 1 || walks[0].(map[string]any)["policy"] != "feeds", "expected the walk of feeds, found %v", walks)
	})
}

func TestADifferenceNamesTheFieldsAndTheModelsOfTheStoredPolicy(t *testing.T) {
	server := testkit.Miniredis(t)
	c := at(t, server)
	users(c, server)
	path := file(t, "policy.yaml", strings.Replace(nightlyYAML, "30 minutes", "40m", 1)+"jitter: 0.5\n")
	expectEqualText(t, "FIELD    OLD  NEW\njitter   0    0.5\ntimeout  30m  40m\n"+
		"4 models use it, 4 would decide otherwise. Due at once: 1. Running: 1. Disabled: 1. None is planned anew. The others decide at their next refresh.\n",
		c.do("policy", "diff", "nightly", path))
	expectEqualText(t, "FIELD    OLD  NEW\njitter   0.5  0\ntimeout  40m  30m\n", c.do("policy", "diff", path, "nightly"))
	c.in = strings.Replace(nightlyJSON, "nightly", "anew", 1)
	expectEqualText(t, "no difference\n", c.do("policy", "diff", "-", file(t, "p", nightlyEnglish)))
	want := map[string]any{"plan": nil, "differences": []any{
		map[string]any{"field": "jitter", "old": 0.5, "new": 0.0}, map[string]any{"field": "timeout", "old": "40m", "new": "30m"},
	}}
	equal(t, want, c.object("policy", "diff", path, "nightly"))
}

func TestAPolicyInUseIsNotRemoved(t *testing.T) {
	onEach(t, func(t *testing.T, c *console, server *testkit.Server) {
		users(c, server)
		before := server.Dump(t)
		expectContains(t, c.fail(exitFailed, "policy", "rm", "nightly"), "nightly: expected a policy that no model uses, found 4. To remove it anyway: refreshd policy rm nightly --force")
		expectContains(t, c.fail(exitFailed, "policy", "rm", "default"), "default: expected a policy that no model uses, found 1")
		equal(t, before, server.Dump(t))
		expectEqualText(t, "removed    nightly\n", c.do("policy", "rm", "nightly", "--force"))
		fault := c.object("model", "get", "waits")["fault"]
		failIf(t, fault != `policy: expected the name of a stored policy, found "nightly"`, "expected a fault that names the policy, found %v", fault)
		expectEqualText(t, "created    nightly\n", c.policy(nightlyYAML))
		c.do("model", "rm", "waits", "due", "runs", "rests")
		expectEqualText(t, "removed    nightly\n", c.do("policy", "rm", "nightly"))
	})
}

func TestTheDefaultPolicyServesUntilOneIsStoredUnderItsName(t *testing.T) {
	c := at(t, testkit.Miniredis(t))
	builtIn := "name: default\ntimeout: 10m\nqueue_timeout: none\nsilent_after: none\nretries: [0s, 1m, 5m]\njitter: 0\nalignment: align_planned\non_exhausted: next_planned\n" + restCanonical
	expectEqualText(t, builtIn, c.do("policy", "get", "default"))
	expectEqualText(t, "unchanged  default\n", c.policy(builtIn))
	c.put("uid: a\n")
	expectContains(t, c.policy("name: default\ntimeout: 1h\n", "--plan"), "1 model uses it, 1 would decide otherwise. Due at once: 1.")
	expectEqualText(t, "updated    default\n", c.do("policy", "put", "-"))
	timeout := c.object("model", "get", "a")["policy_definition"].(map[string]any)["timeout"]
	failIf(t, timeout != "1h", "expected the stored default policy in force, found %v", timeout)
	expectEqualText(t, "removed    default\n", c.do("policy", "rm", "default", "--force"))
	expectEqualText(t, builtIn, c.do("policy", "get", "default"))
}

func TestAPartialPolicyKeepsWhatTheStoredDefaultSays(t *testing.T) {
	onEach(t, func(t *testing.T, c *console, _ *testkit.Server) {
		c.policy("name: default\ntimeout: 7m\nretries: [3m]\ngive_up_after: 1w\n")
		c.in = "name: quick\ntimeout: 1m\n"
		_, _, stderr := c.run("policy", "put", "-")
		expectContains(t, stderr, "note: quick: from the policy default: retries, alignment, on_exhausted, give_up_after\n")
		whole, english := c.do("policy", "get", "quick"), c.do("policy", "english", "quick")
		expectContains(t, whole, "timeout: 1m\n", "retries: [3m]\n", "on_exhausted: next_planned\n", "give_up_after: 1w\n")
		expectContains(t, english, "On the first failure, retry after 3 minutes", "or give up if there is none", "Give up after 1 week")

		// A stored policy does not change with the default, nor does one that is put again as it is shown.
		c.policy("name: default\nretries: []\nspread: 5m\n")
		expectEqualText(t, whole, c.do("policy", "get", "quick"))
		for _, text := range []string{whole, english, c.do("policy", "get", "quick", "-o", "json")} {
			expectEqualText(t, "unchanged  quick\n", c.policy(text, "--name", "quick"))
		}

		// A file may bring its own default, in whatever place.
		c.policy("name: slow\ntimeout: 2h\n---\nname: default\nretries: [9m]\n")
		expectContains(t, c.do("policy", "get", "slow"), "timeout: 2h\n", "retries: [9m]\n", "spread: none\n")
		c.in = "policy: {timeout: 1m}\n"
		expectContains(t, c.do("simulate", "--policy", "-", "--outcomes", file(t, "o", "failure 1m\n"), "--start", "2026-01-05T00:00:00Z"), "after 9m")
	})
}

func TestTheJSONOfAPolicyCommandAlwaysHasEveryField(t *testing.T) {
	server := testkit.Miniredis(t)
	c := at(t, server)
	c.policy(nightlyYAML + "---\nname: other\n")
	server.Client(t).HSet(t.Context(), "bigtables:policies", "broken", "{")
	yaml := file(t, "policy.yaml", nightlyYAML+"---\nname: other\n")
	const outcome = "completed name plan result warnings"
	for command, fields := range map[string]string{
		"check " + yaml: outcome, "put " + yaml + " --plan": outcome, "put " + yaml: outcome, "rm other": outcome, "ls": "name policy readable", "english nightly": "english name",
		"diff nightly default": "differences plan", "diff nightly nightly": "differences plan", "english default": "english name",
		"get nightly": "alignment circuit closed delays_by_error disabled_reason email failing_from fresh_within give_up_after guard jitter limits max_retry_after misfire name never_retry " +
			"notify on_exhausted on_suspect queue_timeout retries retry_after_scope retry_window rrule silent_after spread timeout warn_within",
	} {
		decoder, count := json.NewDecoder(strings.NewReader(c.do(strings.Fields("policy -o json "+command)...))), 0
		for ; decoder.More(); count++ {
			var object map[string]any
			must(t, decoder.Decode(&object))
			diff := cmp.Diff(strings.Fields(fields), slices.Sorted(maps.Keys(object)))
			failIf(t, diff != "", "%s: -want +got\n%s", command, diff)
			warnings, found := object["warnings"]
			failIf(t, found && warnings == nil, "%s: expected a list of warnings, found null", command)
		}
		failIf(t, count == 0, "%s: expected objects, found none", command)
		c.policy(nightlyYAML + "---\nname: other\n")
	}
}

func TestAStoredPolicyThatCannotBeReadIsListedAsSuchAndCanBeReplaced(t *testing.T) {
	onEach(t, func(t *testing.T, c *console, server *testkit.Server) {
		c.policy(nightlyYAML)
		server.Client(t).HSet(t.Context(), "bigtables:policies", "broken", "{", "newer", `{"timeout":"1h","colour":"red"}`)
		expectContains(t, c.do("policy", "ls"), "broken   cannot be read", "newer    cannot be read", "nightly  30m")
		for i, object := range c.objects(c.do("policy", "ls", "-o", "json")) {
			name := []string{"broken", "default", "newer", "nightly"}[i]
			readable := name == "nightly" || name == "default"
			failIf(t, object["name"] != name || object["readable"] != readable || (object["policy"] != nil) != readable, "expected %s, found %v", name, object)
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
	failIf(t, code != exitDone, "expected exit code 0, found %d", code)
	expectEqualText(t, "ok         tight\nok         open\n", stdout)
	expectContains(t, stderr, "warning: ", warned, "policy.yaml line 6: timeout: is missing: 10m, that of the policy default\n")
	expectContains(t, c.fail(exitFailed, "policy", "check", path, "--strict"), warned)

	_, stdout, stderr = c.run("policy", "put", path, "-o", "json")
	expectContains(t, stderr, warned)
	told := c.objects(stdout)[0]["warnings"].([]any)
	failIf(t, len(told) != 1 || !strings.Contains(told[0].(string), warned), "expected the warning in the outcome, found %v", told)
	for _, good := range []string{nightlyYAML, `{"name":"a","maxRetries":3,"timeout":"1m"}`} { // a default that another name of document 004 brings is not missing
		c.in = good
		c.do("policy", "check", "-", "--strict")
	}
}

func TestWhatAPolicySaysDoesNotReachTheTerminalAsControlCharacters(t *testing.T) {
	server := testkit.Miniredis(t)
	c := at(t, server)
	const evil = "\u001b[31m\u009b\u0007\u202e"
	fine := `{"timeout":"1m","retries":{"expr":"reason == \"\\u001b[31m\" ? 1 : false"},"never_retry":["größer"]}`
	server.Client(t).HSet(t.Context(), "bigtables:policies", "evil"+evil, `{"disabled_reason":"`+evil+`","timeout":"1h"}`, "fine", fine)
	see := func(args ...string) string {
		_, stdout, stderr := c.run(append([]string{"policy"}, args...)...)
		for _, r := range stdout + stderr {
			if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
				t.Errorf("found %q in %q", r, stdout+stderr)
				break
			}
		}
		return stdout
	}
	for _, field := range []string{"name", "rrule", "timezone", "timeout", "retries", "alignment", "misfire", "disabled_reason", "expr", evil} {
		text := check.Got(json.Marshal(map[string]any{field: evil}))(t)
		c.in = string(text)
		see("put", "-")
	}
	see("check", file(t, "policy", "Allow 1 hour to complete\nRetry "+evil))
	for _, args := range [][]string{{"ls"}, {"get", "evil" + evil}, {"put", "-", "--name", evil}, {"diff", "fine", "default"}, {"diff", "default", "fine"}} {
		see(args...)
	}
	for _, command := range []string{"get", "english", "check"} {
		expectContains(t, see(command, "fine"), "fine")
	}
}
