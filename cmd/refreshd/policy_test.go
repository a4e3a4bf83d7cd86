package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
)

// The same policy in each of its forms, and in its canonical one.
const (
	nightlyYAML = "name: nightly\nrrule: FREQ=DAILY;BYHOUR=3;BYMINUTE=0;BYSECOND=0\ntimeout: 30 minutes\nretries: [0, PT5M]\n"
	nightlyJSON = `{"name":"nightly","rrule":"FREQ=DAILY;BYHOUR=3;BYMINUTE=0;BYSECOND=0","timeout":"30m","retries":["0s","5m"]}`

	nightlyEnglish = "This policy is called nightly\nRefresh the model every day at 3 AM\nAllow 30 minutes to complete\n" +
		"Retry policy:\n- On the first failure, retry immediately.\n- On the second failure, retry after 5 minutes.\n"

	nightlyCanonical = "name: nightly\nrrule: FREQ=DAILY;BYHOUR=3;BYMINUTE=0;BYSECOND=0\ntimeout: 30m\nqueue_timeout: none\n" +
		"retries: [0s, 5m]\njitter: 0\nalignment: align_planned\non_exhausted: next_planned\n" + restCanonical
	restCanonical = "give_up_after: none\nnever_retry: []\ndelays_by_error: {}\nretry_window: none\nmisfire: run_once\nspread: none\n" +
		"limits: []\ncircuit: none\nretry_after_scope: auto\nclosed: []\nfresh_within: none\nwarn_within: none\n" +
		"notify: [disabled, recovered, stale, fresh]\nfailing_from: none\nemail: none\ndisabled_reason: \"\"\n"
)

func TestAPolicyIsTheSameFromAFileFromStandardInputAndFromRedis(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		for name, text := range map[string]string{"yaml": nightlyYAML, "json": nightlyJSON, "english": nightlyEnglish, "marked": "\xEF\xBB\xBF" + nightlyYAML} {
			c := at(t, server)
			for _, from := range []string{file(t, "policy", text), "-"} {
				server.Flush(t)
				c.in = text
				expectEqualText(t, nightlyCanonical, c.do("policy", "get", from))
				expectEqualText(t, "created    nightly\n", c.do("policy", "put", from))
				expectEqualText(t, nightlyCanonical, c.do("policy", "get", "nightly"))
				expectContains(t, c.do("policy", "ls"), "nightly  30m      2        FREQ=DAILY;BYHOUR=3;BYMINUTE=0;BYSECOND=0\n")
			}
			if t.Failed() {
				t.Fatal(name)
			}
		}
	})
}

func expectEqualText(t *testing.T, want, got string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestAPolicyIsCreatedUpdatedOrLeftAlone(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		c := at(t, server)
		c.in = nightlyYAML
		expectEqualText(t, "created    nightly\n", c.do("policy", "put", "-"))
		before := server.Dump(t)
		for _, same := range []string{nightlyYAML, nightlyJSON, nightlyEnglish} {
			c.in = same
			expectEqualText(t, "unchanged  nightly\n", c.do("policy", "put", "-"))
		}
		if diff := cmp.Diff(before, server.Dump(t)); diff != "" {
			t.Error(diff)
		}
		c.in = strings.Replace(nightlyYAML, "30", "40", 1)
		expectEqualText(t, "updated    nightly\n", c.do("policy", "put", "-"))
		expectContains(t, c.do("policy", "get", "nightly"), "timeout: 40m\n")
	})
}

func TestManyPoliciesOfOneFileAreStoredEachUnderItsName(t *testing.T) {
	for name, text := range map[string]string{
		"documents": "name: a\ntimeout: 1m\n---\n# nothing\n---\nname: b\ntimeout: 2m\n",
		"list":      "- name: a\n  timeout: 1m\n- name: b\n  timeout: 2m\n",
		"JSON":      `[{"name":"a","timeout":"1m"},{"name":"b","timeout":"2m"}]`,
		"both":      "[{name: a, timeout: 1m}]\n---\n{name: b, timeout: 2m}\n",
	} {
		t.Run(name, func(t *testing.T) {
			c := at(t, testkit.Miniredis(t))
			path := file(t, "policies", text)
			expectEqualText(t, "created    a\ncreated    b\n", c.do("policy", "put", path))
			both := c.do("policy", "get", path)
			expectEqualText(t, c.do("policy", "get", "a")+"---\n"+c.do("policy", "get", "b"), both)
			c.in = both
			expectEqualText(t, "unchanged  a\nunchanged  b\n", c.do("policy", "put", "-"))
		})
	}
}

func TestAPolicyIsStoredUnderAnotherNameOnRequest(t *testing.T) {
	c := at(t, testkit.Miniredis(t))
	c.in = nightlyYAML
	expectEqualText(t, "created    weekly\n", c.do("policy", "put", "-", "--name", "weekly"))
	expectEqualText(t, "created    monthly\n", c.do("policy", "put", "weekly", "--name", "monthly"))
	for _, name := range []string{"weekly", "monthly"} {
		expectEqualText(t, strings.Replace(nightlyCanonical, "nightly", name, 1), c.do("policy", "get", name))
	}
	expectContains(t, c.fail(exitFailed, "policy", "get", "nightly"), "nightly: expected a file or the name of a stored policy, found neither\n")
}

func TestNothingIsStoredWhenOneOfSeveralPoliciesIsRefused(t *testing.T) {
	server := testkit.Miniredis(t)
	c := at(t, server)
	for name, test := range map[string]struct{ text, want string }{
		"a bad field":        {"name: a\ntimeout: 1m\n---\nname: b\ntimeout: soon\n", `standard input line 5: timeout: expected a duration`},
		"no name":            {"name: a\ntimeout: 1m\n---\ntimeout: 1m\n", "standard input line 4: name: expected 1-200 letters"},
		"a reserved name":    {"name: a\ntimeout: 1m\n---\ntimeout: 1m\nname: inline-0\n", `standard input line 5: name: expected 1-200 letters`},
		"no YAML":            {"name: a\ntimeout: 1m\n---\nname: \"b\n", "standard input line 4: "},
		"cut off JSON":       {`[{"name":"a"},{"name":"b"`, "standard input line 1: "},
		"no policy":          {"name: a\n---\nb\n", "standard input line 3: expected an object with name"},
		"an unknown field":   {"name: a\n---\nname: b\ntries: 3\n", "standard input line 4: tries: expected one of name, rrule"},
		"the same field":     {"name: a\n---\nname: b\nname: c\n", "standard input line 3: "},
		"nothing":            {"\n# nothing\n", "standard input: expected a policy, found nothing"},
		"a bad English line": {"Allow 1 hour to complete\nRetry nicely\n", `standard input line 2: expected a known sentence, found "Retry nicely"`},
	} {
		t.Run(name, func(t *testing.T) {
			c := *c
			c.t, c.in = t, test.text
			expectContains(t, c.fail(exitFailed, "policy", "put", "-"), test.want)
			if dump := server.Dump(t); len(dump) > 0 {
				t.Errorf("expected nothing stored, found %v", dump)
			}
		})
	}
}

func TestAnErrorOfAPolicyNamesFileLineAndField(t *testing.T) {
	c := at(t, testkit.Miniredis(t))
	for text, want := range map[string]string{
		"name: a\nretries:\n  - 0s\n  - 1x\n":                     `policy.yaml line 4: retries[1]: expected a duration such as`,
		"name: a\n\nrrule: FREQ=DAILY;BYHOUR=25\n":                `policy.yaml line 3: rrule BYHOUR: expected`,
		"name: a\nretries:\n  expr: |\n    k <\n":                 `policy.yaml line 3: retries.expr: expected an expression over k`,
		"name: a\ndelays_by_error:\n  A: 1m\n  B: x\n":            `policy.yaml line 4: delays_by_error.B: expected a duration such as`,
		"timeout: 1h\nretries:\n  strategy: cubic\n  base: 1m\n":  `policy.yaml line 3: retries.strategy: expected fixed or linear`,
		"timeout: 1h\nretry_on: [A]\nnever_retry: [B]\n":          `policy.yaml line 3: never_retry: expected retry_on or never_retry, found both`,
		"Allow 1 hour to complete\n\nRefresh at half past seldom": `policy.yaml line 3: `,
	} {
		path := file(t, "policy.yaml", text)
		for _, command := range []string{"check", "get", "english", "put"} {
			expectContains(t, c.fail(exitFailed, "policy", command, path), want)
		}
		expectContains(t, c.fail(exitFailed, "policy", "diff", path, path), want)
	}
}

func TestWrongUseOfAPolicyCommandIsToldAsSuch(t *testing.T) {
	c := at(t, testkit.Miniredis(t))
	c.in = "name: a\n---\nname: b\n"
	for want, args := range map[string][]string{
		"found 0 arguments": {"put"}, "found 2 arguments": {"get", "a", "b"}, "found 1 arguments": {"diff", "a"},
		"--name: expected one policy to be called so, found 2": {"put", "-", "--name", "c"},
	} {
		expectContains(t, c.fail(exitUsage, append([]string{"policy"}, args...)...), want)
	}
	expectContains(t, c.fail(exitFailed, "policy", "diff", "-", "default"), "-: expected one policy, found 2")
	expectContains(t, c.fail(exitFailed, "policy", "get", "/no/such/file"), "/no/such/file")
	expectContains(t, c.fail(exitFailed, "policy", "get", t.TempDir()), "found a directory")
}

// users saves models that use the policy nightly: one waits, one is due, one runs, one is disabled; another one is not theirs.
func users(c *console, server *testkit.Server) {
	c.t.Helper()
	c.in = nightlyYAML
	c.do("policy", "put", "-")
	c.in = "uid: waits\npolicy: nightly\n---\nuid: due\npolicy: nightly\nrefresh: now\n---\nuid: runs\npolicy: nightly\nrefresh: now\n" +
		"---\nuid: rests\npolicy: nightly\n---\nuid: other\nrrule: FREQ=DAILY\n"
	c.do("model", "put", "-")
	c.do("model", "disable", "rests")
	q := fixture.Live(c.t, server)
	records, err := q.Store.Load(c.t.Context(), []string{"runs"})
	if err != nil {
		c.t.Fatal(err)
	}
	now := records["runs"].RefreshAt.Add(time.Second)
	start := records["runs"].Decide(records["runs"].Start(now, "a1"), now)
	q.Commit(now, start)
}

func TestAPlanStoresNothingAndCountsTheModelsThatItConcerns(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		c := at(t, server)
		users(c, server)
		before := server.Dump(t)
		for change, changed := range map[string]int{
			"timeout: 40m": 4, "timeout: 30m": 0, "timeout: 30m\nnotify: []": 0, "timeout: 30m\nretries: [1m, 5m]": 4,
			"timeout: 30m\nrrule: FREQ=DAILY;BYHOUR=4;BYMINUTE=0;BYSECOND=0": 4,
		} {
			fields := map[string]string{"rrule": "FREQ=DAILY;BYHOUR=3;BYMINUTE=0;BYSECOND=0", "retries": "[0, 5m]"}
			c.in = "name: nightly\n" + change + "\n"
			for name, value := range fields {
				if !strings.Contains(change, name) {
					c.in += name + ": " + value + "\n"
				}
			}
			anew, text, starts := 0.0, "none is planned anew", []any{}
			if strings.Contains(change, "rrule") { // the one that waits
				at := tomorrow(t, server, 4)
				anew, text, starts = 1, "1 planned anew, the first at "+at, []any{at}
			}
			want := map[string]any{"models": 4.0, "changed": float64(changed), "due_at_once": 1.0, "running": 1.0, "disabled": 1.0, "replanned": anew, "first_starts": starts}
			if diff := cmp.Diff(want, c.object("policy", "put", "-", "--plan")["plan"]); diff != "" {
				t.Errorf("%s: -want +got\n%s", change, diff)
			}
			expectContains(t, c.do("policy", "put", "-", "--plan"), "planned    nightly\n"+
				fmt.Sprintf("4 models use it, %d would decide otherwise; 1 due at once, 1 running, 1 disabled; %s; the others decide at their next refresh\n", changed, text))
		}
		if diff := cmp.Diff(before, server.Dump(t)); diff != "" {
			t.Errorf("expected nothing stored: %s", diff)
		}
	})
}

// tomorrow is when that hour comes next, on the clock of the server.
func tomorrow(t *testing.T, server *testkit.Server, hour int) string {
	t.Helper()
	now, err := fixture.Live(t, server).Store.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(now.Year(), now.Month(), now.Day(), hour, 0, 0, 0, time.UTC)
	if !at.After(now) {
		at = at.AddDate(0, 0, 1)
	}
	return model.FormatTime(at)
}

func TestAPlanNamesTheFirstStartsAndStatsTellHowFarTheyAre(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		c := at(t, server)
		c.in = "name: feeds\nrrule: FREQ=YEARLY\n"
		c.do("policy", "put", "-")
		for _, zone := range []string{"UTC", "Asia/Tokyo", "Asia/Dhaka", "Africa/Cairo", "Africa/Lagos"} {
			c.in += "---\nuid: " + zone + "\npolicy: feeds\ntimezone: " + zone + "\n"
		}
		c.in = strings.SplitN(c.in, "---\n", 2)[1]
		c.do("model", "put", "-")
		fixture.Live(t, server).Redis.Del(t.Context(), "bigtables:bulks")

		c.in = "name: feeds\nrrule: FREQ=DAILY\n"
		plan := c.object("policy", "put", "-", "--plan")["plan"].(map[string]any)
		starts := plan["first_starts"].([]any)
		if plan["replanned"] != 5.0 || len(starts) != 3 || !slices.IsSortedFunc(starts, func(a, b any) int { return strings.Compare(a.(string), b.(string)) }) {
			t.Errorf("expected five models planned anew, and the first three of their starts, found %v", plan)
		}
		if stats := c.do("stats"); strings.Contains(stats, "replanning") {
			t.Errorf("expected nothing planned anew yet, found %s", stats)
		}
		c.do("policy", "put", "-")
		expectContains(t, c.do("stats"), "feeds: 0 models seen, 0 changed, since 20")
		if walks := c.object("stats")["replanning"].([]any); len(walks) != 1 || walks[0].(map[string]any)["policy"] != "feeds" {
			t.Errorf("expected the walk of feeds, found %v", walks)
		}
	})
}

func TestADifferenceNamesTheFieldsAndTheModelsOfTheStoredPolicy(t *testing.T) {
	server := testkit.Miniredis(t)
	c := at(t, server)
	users(c, server)
	path := file(t, "policy.yaml", strings.Replace(nightlyYAML, "30 minutes", "40m", 1)+"jitter: 0.5\n")
	expectEqualText(t, "FIELD    OLD  NEW\njitter   0    0.5\ntimeout  30m  40m\n"+
		"4 models use it, 4 would decide otherwise; 1 due at once, 1 running, 1 disabled; none is planned anew; the others decide at their next refresh\n",
		c.do("policy", "diff", "nightly", path))
	expectEqualText(t, "FIELD    OLD  NEW\njitter   0.5  0\ntimeout  40m  30m\n", c.do("policy", "diff", path, "nightly"))
	c.in = strings.Replace(nightlyJSON, "nightly", "anew", 1)
	expectEqualText(t, "no difference\n", c.do("policy", "diff", "-", file(t, "p", nightlyEnglish)))
	want := map[string]any{"plan": nil, "differences": []any{
		map[string]any{"field": "jitter", "old": 0.5, "new": 0.0}, map[string]any{"field": "timeout", "old": "40m", "new": "30m"},
	}}
	if diff := cmp.Diff(want, c.object("policy", "diff", path, "nightly")); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestAPolicyInUseIsNotRemoved(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		c := at(t, server)
		users(c, server)
		before := server.Dump(t)
		expectContains(t, c.fail(exitFailed, "policy", "rm", "nightly"), "nightly: expected a policy that no model uses, found 4; --force removes it all the same")
		expectContains(t, c.fail(exitFailed, "policy", "rm", "default"), "default: expected a policy that no model uses, found 1")
		expectContains(t, c.fail(exitFailed, "policy", "rm", "weekly"), "weekly: expected the name of a stored policy, found none of that name")
		if diff := cmp.Diff(before, server.Dump(t)); diff != "" {
			t.Error(diff)
		}
		expectEqualText(t, "removed    nightly\n", c.do("policy", "rm", "nightly", "--force"))
		if fault := c.object("model", "get", "waits")["fault"]; fault != `policy: expected the name of a stored policy, found "nightly"` {
			t.Errorf("expected a fault that names the policy, found %v", fault)
		}
		c.in = nightlyYAML
		expectEqualText(t, "created    nightly\n", c.do("policy", "put", "-"))
		for _, uid := range []string{"waits", "due", "runs", "rests"} {
			c.do("model", "rm", uid)
		}
		expectEqualText(t, "removed    nightly\n", c.do("policy", "rm", "nightly"))
	})
}

func TestTheDefaultPolicyServesUntilOneIsStoredUnderItsName(t *testing.T) {
	server := testkit.Miniredis(t)
	c := at(t, server)
	builtIn := "name: default\ntimeout: 10m\nqueue_timeout: none\nretries: [0s, 1m, 5m]\njitter: 0\nalignment: align_planned\non_exhausted: next_planned\n" + restCanonical
	expectEqualText(t, builtIn, c.do("policy", "get", "default"))
	c.in = builtIn
	expectEqualText(t, "unchanged  default\n", c.do("policy", "put", "-"))
	c.in = "uid: a\n"
	c.do("model", "put", "-")
	c.in = "name: default\ntimeout: 1h\n"
	expectContains(t, c.do("policy", "put", "-", "--plan"), "1 model uses it, 1 would decide otherwise; 1 due at once")
	expectEqualText(t, "updated    default\n", c.do("policy", "put", "-"))
	if timeout := c.object("model", "get", "a")["policy_definition"].(map[string]any)["timeout"]; timeout != "1h" {
		t.Errorf("expected the stored default policy in force, found %v", timeout)
	}
	expectEqualText(t, "removed    default\n", c.do("policy", "rm", "default", "--force"))
	expectEqualText(t, builtIn, c.do("policy", "get", "default"))
}

func TestAPartialPolicyKeepsWhatTheStoredDefaultSays(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		c := at(t, server)
		c.in = "name: default\ntimeout: 7m\nretries: [3m]\ngive_up_after: 1w\n"
		c.do("policy", "put", "-")
		c.in = "name: quick\ntimeout: 1m\n"
		_, _, stderr := c.run("policy", "put", "-")
		expectContains(t, stderr, "note: quick: from the policy default: retries, alignment, on_exhausted, give_up_after\n")
		whole := c.do("policy", "get", "quick")
		expectContains(t, whole, "timeout: 1m\n", "retries: [3m]\n", "on_exhausted: next_planned\n", "give_up_after: 1w\n")
		english := c.do("policy", "english", "quick")
		expectContains(t, english, "On the first failure, retry after 3 minutes", "or give up if there is none", "Give up after 1 week")

		// What is stored does not change with the default, nor what is put again as it is shown.
		c.in = "name: default\nretries: []\nspread: 5m\n"
		c.do("policy", "put", "-")
		expectEqualText(t, whole, c.do("policy", "get", "quick"))
		for _, text := range []string{whole, english, c.do("policy", "get", "quick", "-o", "json")} {
			c.in = text
			expectEqualText(t, "unchanged  quick\n", c.do("policy", "put", "-", "--name", "quick"))
		}

		// A file may bring its own default, in whatever place.
		c.in = "name: slow\ntimeout: 2h\n---\nname: default\nretries: [9m]\n"
		c.do("policy", "put", "-")
		expectContains(t, c.do("policy", "get", "slow"), "timeout: 2h\n", "retries: [9m]\n", "spread: none\n")
		c.in = "policy: {timeout: 1m}\n"
		expectContains(t, c.do("simulate", "--policy", "-", "--outcomes", file(t, "o", "failure 1m\n"), "--start", "2026-01-05T00:00:00Z"), "+9m")
	})
}
