package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
)

const twiceDaily = `
name: twice-daily
rrule: FREQ=DAILY;BYHOUR=6,16;BYMINUTE=0;BYSECOND=0
timezone: Europe/Berlin
timeout: 1h
retries: ["0s", "1m", "5m", "15m", "30m", "1h"]
`

// told returns the events of simulate -o json, each as "at event attempt_no refresh_at", and the summary.
func told(c *console, args ...string) (events []string, summary map[string]any) {
	c.t.Helper()
	for _, object := range c.objects(c.do(append([]string{"simulate", "-o", "json"}, args...)...)) {
		if sum, last := object["summary"].(map[string]any); last {
			summary = sum
			continue
		}
		next := "-"
		if object["refresh_at"] != nil {
			next = fmt.Sprint(object["refresh_at"])
		}
		events = append(events, fmt.Sprintf("%s %s %v %s", object["at"], object["event"], object["attempt_no"], next))
	}
	return events, summary
}

func TestASimulationNeedsNoRedis(t *testing.T) {
	c := nowhere(t)
	c.in = "success 10m # the start by hand\n\nfailure 2h\n"
	policy := file(t, "p.yaml", twiceDaily)
	// Midnight in Berlin is 23:00 UTC in winter; the second answer comes after its deadline.
	want := []string{
		"2026-01-04T23:00:00.000Z start 1 2026-01-05T00:00:00.000Z", "2026-01-04T23:10:00.000Z success 1 2026-01-05T05:00:00.000Z",
		"2026-01-05T05:00:00.000Z start 1 2026-01-05T06:00:00.000Z", "2026-01-05T06:00:00.000Z timeout 1 2026-01-05T06:00:00.000Z",
	}
	got, summary := told(c, "--policy", policy, "--start", "2026-01-05", "--outcomes", "-")
	equal(t, want, got)
	failIf(t, summary["attempts"] != 2.0 || summary["timeouts"] != 1.0, "expected two attempts and a timeout, found %v", summary)
	never := summary["time_to_give_up"] == nil && summary["ended"] == nil
	failIf(t, !never || summary["worst_staleness"] != "6h50m", "expected null for what never was, and lengths in words, found %v", summary)
}

func TestASimulationPrintsEveryFormat(t *testing.T) {
	c := nowhere(t)
	args := []string{"simulate", "--policy", file(t, "p.yaml", twiceDaily), "--outcomes", file(t, "o", "success 1m"), "-o"}
	for format, want := range map[string]string{"table": "twice-daily (Europe/Berlin)", "json": `"summary"`, "svg": "<svg "} {
		expectContains(t, c.do(append(args, format)...), want)
	}
}

func TestASimulationTellsModelsFromPoliciesInEveryLanguage(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"a policy in YAML":        {twiceDaily, "2026-01-05T15:00:00.000Z"},
		"a policy in JSON":        {`{"rrule": "FREQ=DAILY;BYHOUR=9", "timeout": "1h"}`, "2026-01-06T09:00:00.000Z"},
		"a policy in English":     {"Refresh the model every 2 hours\nAllow 1 hour for a response\n", "2026-01-05T14:00:00.000Z"},
		"a one-shot":              {"timeout: 1h", "-"},
		"a model":                 {"uid: a\nrrule: FREQ=DAILY;BYHOUR=9;BYMINUTE=0\npolicy:\n  timeout: 1h\n", "2026-01-06T09:00:00.000Z"},
		"a model without uid":     {"payload: {n: 1}\nrrule: FREQ=DAILY;BYHOUR=9;BYMINUTE=0\n", "2026-01-06T09:00:00.000Z"},
		"a model anchored by day": {"uid: a\nrrule: FREQ=DAILY;INTERVAL=2\n", "2026-01-07T00:00:00.000Z"},
		"the rule of its policy":  {"policy: {rrule: FREQ=DAILY;BYHOUR=9;BYMINUTE=0}", "2026-01-06T09:00:00.000Z"},
	} {
		c := nowhere(t)
		c.in = test.text
		events, _ := told(c, "--policy", "-", "--start", "2026-01-05T12:00:00Z", "--outcomes", file(t, "o", "success 1m"))
		if want := "2026-01-05T12:01:00.000Z success 1 " + test.want; len(events) < 2 || events[1] != want {
			t.Errorf("%s: expected %s, found %v", name, want, events)
		}
	}
}

func TestAStoredPolicyIsSimulatedByItsName(t *testing.T) {
	c := at(t, testkit.Miniredis(t))
	c.policy(twiceDaily)
	outcomes := file(t, "o", "success 1m")
	for name, text := range map[string]string{"twice-daily": "", "-": "uid: a\npolicy: twice-daily\n"} {
		c.in = text
		events, _ := told(c, "--policy", name, "--start", "2026-01-05T12:00:00Z", "--outcomes", outcomes)
		want := "2026-01-05T12:01:00.000Z success 1 2026-01-05T15:00:00.000Z"
		failIf(t, len(events) != 2 || events[1] != want, "expected %s, found %v", want, events)
	}
}

func TestTwoPoliciesMeetTheSameFate(t *testing.T) {
	c := nowhere(t)
	usual, hasty := file(t, "a.yaml", twiceDaily), file(t, "b.yaml", strings.Replace(twiceDaily, "twice-daily", "hasty", 1)+"on_exhausted: give_up\n")
	args := []string{"--policy", usual, "--start", "2026-01-05", "--days", "10", "--seed", "7", "--fail", "30%", "--lost", "2.5%", "--duration", "1m-5m"}
	both := c.do(append([]string{"simulate", "--against", hasty}, args...)...)
	expectContains(t, both, "twice-daily  hasty", "retries that helped")
	failIf(t, c.do(append([]string{"simulate", "--against", hasty}, args...)...) != both, "expected the same seed to tell the same")
	alone, _ := told(c, args...)
	var compared []string
	for _, object := range c.objects(c.do(append([]string{"simulate", "-o", "json", "--against", hasty}, args...)...)) {
		if object["policy"] == "hasty" && object["event"] != nil {
			compared = append(compared, fmt.Sprint(object["at"], object["event"]))
		}
	}
	failIf(t, len(alone) == 0 || len(alone) != len(compared),
		"expected policies that differ in what was not needed to run alike, found %d and %d events", len(alone), len(compared))
	same := c.do(append([]string{"simulate", "--against", usual}, args...)...)
	expectContains(t, same, usual) // equal names would prove nothing
}

func TestAShareThatIsGivenAloneLeavesTheOtherWhatIsLeftAndWithoutAnyEveryAttemptFails(t *testing.T) {
	c := nowhere(t)
	c.in = twiceDaily + "on_exhausted: next_planned\n"
	for flags, want := range map[string][]string{
		"--limit 40 --fail 100%": {"timeouts             0\n"}, "--limit 40 --lost 100%": {"failures             0\n"}, "--limit 40 --fail 99.5": {"attempts             40\n"},
		"--limit 0": {"attempts             50\n", "failures             50\n", "not within 50 attempts", "cut off after 50 attempts", "stopped after 50 attempts; a higher limit allows more"},
	} {
		_, stdout, stderr := c.run(line("simulate --policy - --start 2026-01-05 " + flags)...)
		expectContains(t, stdout+stderr, append(want, "successes            0\n")...)
	}
}

func TestWhatCannotBeSimulatedIsRefusedWithItsPlace(t *testing.T) {
	for name, test := range map[string]struct{ policy, outcomes, want string }{
		"a policy":          {"timeout: 1h\nretries: [1m, soon]\n", "lost", "p line 2: retries[1]: expected a duration"},
		"a model":           {"uid: a\npolicy:\n  timeout: 0\n", "lost", `p line 3: policy.timeout: expected a duration above zero`},
		"a loose dtstart":   {"uid: a\ndtstart: 2026-01-01\n", "lost", "p line 1: rrule: expected a rule, as dtstart is given"},
		"an unknown field":  {"uid: a\nrule: x\n", "lost", "p line 2: rule: expected one of uid"},
		"several documents": {"uid: a\n---\nuid: b\n", "lost", "expected one policy or model, found 2"},
		"nothing":           {"", "lost", "expected one policy or model, found 0"},
		"an outcome":        {"timeout: 1h", "lost\nfailed 3m\n", "o line 2: expected \"success 2m\""},
	} {
		told := nowhere(t).fail(exitFailed, "simulate", "--policy", file(t, "p", test.policy), "--outcomes", file(t, "o", test.outcomes))
		failIf(t, !strings.Contains(told, test.want), "%s: expected %s, found %s", name, test.want, told)
	}
}

func TestRecordedNumbersAreJudgedByTheGuardsOfAPolicy(t *testing.T) {
	c := nowhere(t)
	guarded := file(t, "p", "timeout: 1h\nguard: [{rows: {min: 1}}, {rows: {drop: 50%}}]\n")
	numbers := file(t, "n", "{\"rows\":100}\n{\"rows\":100}\n{\"rows\":100}\n{\"rows\":49,\"bytes\":7}\n{\"rows\":50}\n")
	expectContains(t, c.do("simulate", "--policy", guarded, "--metrics", numbers),
		"4        bytes 7, rows 49  rows 49: over 50% less than the usual 100\n", "1 of 5 refreshes doubted (20.0%).")
	printed := c.objects(c.do("simulate", "--policy", guarded, "--metrics", numbers, "-o", "json"))
	stopIf(t, len(printed) != 2, "expected one doubted refresh and a summary, found %v", printed)
	equal(t, map[string]any{"summary": map[string]any{"refreshes": 5.0, "doubted": 1.0, "rate": 0.2}}, printed[1])
	failIf(t, printed[0]["refresh"] != 4.0 || printed[0]["suspect"] != "rows 49: over 50% less than the usual 100", "found %v", printed[0])

	for name, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"a bad number":  {[]string{"--policy", guarded, "--metrics", file(t, "o", "{\"rows\":1}\n{\"rows\":\"many\"}")}, exitFailed, "o line 2: rows: expected a number"},
		"no guard":      {[]string{"--policy", file(t, "q", "timeout: 1h"), "--metrics", numbers}, exitFailed, "expected a policy with `guard`, found one that doubts nothing"},
		"a picture":     {[]string{"--policy", guarded, "--metrics", numbers, "-o", "svg"}, exitUsage, "expected -o table or json with --metrics, found svg"},
		"a run as well": {[]string{"--policy", guarded, "--metrics", numbers, "--days", "3"}, exitUsage, "metrics: expected only --policy beside it, found more"},
	} {
		told := c.fail(test.code, append([]string{"simulate"}, test.args...)...)
		failIf(t, !strings.Contains(told, test.want), "%s: expected %s, found %s", name, test.want, told)
	}
}

// TestThePictureOfTheREADMEIsWhatItsCommandPrints runs the command that README.md shows above docs/twice-daily.svg.
func TestThePictureOfTheREADMEIsWhatItsCommandPrints(t *testing.T) {
	want := check.Got(os.ReadFile("../../docs/twice-daily.svg"))(t)
	c := &console{t: t}
	got := c.do("simulate", "--policy", "../../examples/policies/twice-daily.txt", "--outcomes", "../../examples/policies/bad-afternoon.txt",
		"--start", "2026-01-05T14:05:00+01:00", "-o", "svg")
	failIf(t, got != string(want), "docs/twice-daily.svg is not what the command prints: print it anew, and look at it")
}

func TestASimulationSaysWhatItAssumes(t *testing.T) {
	c := &console{t: t}
	const run = "simulate --policy ../../examples/policies/twice-daily.txt --start 2026-01-05T14:05:00+01:00 --limit 1"
	for flags, want := range map[string]string{
		"":                            "(Europe/Berlin)\nAssumed: every attempt fails after a minute.\nDAY ",
		" --fail 20 --duration 2m-3m": "(Europe/Berlin)\nAssumed: by chance (seed 1), 20% of the attempts fail and 1% are lost; an answer takes 2m to 3m.\nDAY ",
		" --outcomes ../../examples/policies/bad-afternoon.txt": "(Europe/Berlin)\nDAY ",
	} {
		expectContains(t, c.do(line(run+flags)...), want, "🚀 start", "answer due by 15:05\n")
		printed := c.do(line(run + flags + " -o json")...)
		failIf(t, strings.Contains(printed, "ssumed"), "expected what programs read as it was, found %s", printed)
	}
}

func TestASimulationOfAFreeHourDoesNotPauseWhereTheClocksShowItTwice(t *testing.T) {
	c := nowhere(t)
	for rule, want := range map[string]string{"30 * * * *": "[00:30 01:30 02:30]", "30 0-23 * * *": "[00:30 02:30]"} {
		policy := file(t, "p.yaml", "{rrule: \""+rule+"\", timezone: Europe/London, timeout: 10m, dtstart: 2026-01-01}")
		events, _ := told(c, "--policy", policy, "--start", "2026-10-25 01:30", "--until", "2026-10-25T03:00:00Z", "--outcomes", file(t, "o", strings.Repeat("success 1m\n", 9)))
		var starts []string
		for _, event := range events {
			if at, _, is := strings.Cut(event, ":00.000Z start"); is {
				starts = append(starts, at[len("2026-10-25T"):])
			}
		}
		failIf(t, fmt.Sprint(starts) != want, "%s: expected starts at %s, found %v", rule, want, starts)
	}
}
