package store

import (
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/policy"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/model"
)

// withPolicy stores a policy under the name p and a one-shot m1 that uses it and is due now.
func (b *bench) withPolicy(text string) {
	b.t.Helper()
	must(b.t, b.Fleet().PutPolicy(b.t.Context(), named(b.t, strings.Replace(text, "{", `{"name":"p",`, 1))))
	b.seed(keys{":model:m1": hash{"rev": "1", "policy": "p", "refresh_at": model.FormatTime(b.now)}})
}

// run starts m1 and ends the attempt a second later, as the word says.
func (b *bench) run(ends ...string) {
	b.t.Helper()
	for _, end := range ends {
		b.mustApply(b.start("m1", "a-"+end))
		b.now = b.now.Add(time.Second)
		record := b.load("m1")
		decision := map[string]func() model.Decision{
			"success":     func() model.Decision { return record.Succeed(b.now, nil) },
			"failure":     func() model.Decision { return record.Fail(policy.Failure{Reason: "HTTP 500"}, b.now) },
			"timeout":     func() model.Decision { return record.Expire(b.now) },
			"postponed":   func() model.Decision { return record.Postpone(0, b.now) },
			"interrupted": func() model.Decision { return record.Interrupt(b.now) },
			"withdrawn":   func() model.Decision { return record.Withdraw(b.now) },
		}[end]()
		b.mustApply(record.Decide(decision, b.now))
	}
}

// retryCounts are total, successful and cycles.
type retryCounts [3]int64

func TestRetriesAndTheCyclesThatTheySavedAreCountedForQueueAndModel(t *testing.T) {
	tests := map[string]struct {
		ends []string
		want retryCounts
	}{
		"the first run succeeds":               {[]string{"success", "success"}, retryCounts{0, 0, 0}},
		"the first retry succeeds":             {[]string{"failure", "success"}, retryCounts{1, 1, 1}},
		"the second retry succeeds":            {[]string{"failure", "timeout", "success"}, retryCounts{2, 1, 1}},
		"the retries do not help":              {[]string{"failure", "failure", "timeout"}, retryCounts{2, 0, 1}},
		"two cycles, one saved":                {[]string{"failure", "success", "success", "failure", "timeout", "failure"}, retryCounts{3, 1, 2}},
		"what does not count is not counted":   {[]string{"failure", "postponed", "interrupted", "withdrawn", "success"}, retryCounts{1, 1, 1}},
		"what does not count before the first": {[]string{"interrupted", "withdrawn", "success"}, retryCounts{0, 0, 0}},
		"a failure of the first run alone":     {[]string{"failure"}, retryCounts{0, 0, 0}},
	}
	everywhere(t, func(t *testing.T, b *bench) {
		for name, test := range tests {
			b := b.fresh(t)
			b.withPolicy(`{"timeout":"1s","retries":["0s","0s"],"on_exhausted":"give_up"}`)
			b.run(test.ends...)
			stats, err := b.Report().Stats(t.Context())
			must(t, err)
			total, successful, cycles := stats.Retries()
			expectEqual(t, name+": of the queue", test.want, retryCounts{total, successful, cycles})
			m := b.load("m1")
			expectEqual(t, name+": of the model", test.want, retryCounts{int64(m.TotalRetries), int64(m.SuccessfulRetries), int64(m.RetriedCycles)})
		}
	})
}

// entries returns the fields of what a stream holds, without time and uid.
func (b *bench) entries(stream string) []map[string]any {
	b.t.Helper()
	held, _ := b.state()[stream].(events)
	for _, entry := range held {
		delete(entry, "at")
		delete(entry, "uid")
	}
	return held
}

func TestAPolicyErrorIsCountedAndStandsInTheJournal(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.withPolicy(`{"timeout":"1h","retries":{"expr":"k == 1 ? '10s' : 'soon'"}}`)
		b.run("failure")
		b.run("failure", "failure")
		stats, err := b.Report().Stats(t.Context())
		failIf(t, err != nil || stats.Counters["policy_error"] != 2, "expected 2 policy errors, found %v, %v", stats.Counters, err)
		var told []any
		for _, entry := range b.entries(":journal") {
			if entry["event"] == "failure" {
				told = append(told, entry["policy_error"])
			}
		}
		const soon = `expr: expected a duration such as "90s", "1h30m", "PT5M" or "10 minutes", found "soon" (no number where one is expected)`
		failIf(t, len(told) != 3 || told[0] != nil || told[1] != told[2] || !strings.HasPrefix(told[1].(string), soon[:60]),
			"expected the error of the second and the third failure, found %q", told)
		if record := b.load("m1"); record.Why != "retry 3 +5m: policy_error, none planned" || record.Disabled {
			t.Errorf("expected a retry after a safe delay, found %q", record.Why)
		}
	})
}

// The next occurrence of its rule is two centuries away. The model beside it, in the same batch, has nothing to do with that.
func TestARuleThatTakesTooManyStepsIsAPolicyErrorOfItsModelAlone(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		dear := `"rrule":"FREQ=SECONDLY;INTERVAL=86401;BYHOUR=0;BYMINUTE=0","dtstart":"2020-01-01"`
		b.withPolicy(`{"timeout":"1h",` + dear + `}`)
		b.seed(keys{":model:m2": hash{"rev": "1", "rrule": "FREQ=HOURLY", "dtstart": "2026-01-01T00:00:00", "refresh_at": model.FormatTime(b.now)}})
		b.mustApply(b.start("m1", "a1"), b.start("m2", "a2"))
		b.now = b.now.Add(time.Second)
		m1, m2 := b.load("m1"), b.load("m2")
		b.mustApply(m1.Decide(m1.Succeed(b.now, nil), b.now), m2.Decide(m2.Succeed(b.now, nil), b.now))

		told := map[string]any{}
		for _, entry := range b.state()[":journal"].(events) {
			if entry["event"] == "success" {
				told[entry["uid"].(string)] = entry["policy_error"]
			}
		}
		const want = "rrule: expected rules that find their next occurrence in at most 4000 steps, found more steps after "
		text, _ := told["m1"].(string)
		failIf(t, !strings.HasPrefix(text, want) || told["m2"] != nil, "expected a policy error of m1 alone, found %q", told)
		if m1, m2 = b.load("m1"), b.load("m2"); m1.Why != "rule takes too many steps: look again later" || m2.Why != "planned" {
			t.Errorf("expected m1 to look again and m2 to be planned, found %q and %q", m1.Why, m2.Why)
		}
		if stats, err := b.Report().Stats(t.Context()); err != nil || stats.Counters["policy_error"] != 2 { // of its start and of its end
			t.Errorf("expected 2 policy errors, found %v, %v", stats.Counters, err)
		}
	})
}

func TestAModelThatGivesUpWhileItWaitsTellsSoWithoutAnEndedAttempt(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.withPolicy(`{"timeout":"1m","retries":["2h"],"give_up_after":"1h"}`)
		b.run("failure")
		b.now = b.now.Add(2 * time.Hour)
		record := b.load("m1")
		b.mustApply(record.Decide(record.StartOrSkip(b.now, "never"), b.now))

		journal := b.entries(":journal")
		last := map[string]any{"event": "give_up", "final": "1", "rev": "4", "refresh_at": "", "refresh_why": "final: no success for 1h",
			"refresh_disabled_until_update": "1", "final_failure_at": "2026-11-21T08:00:01.000Z", "refresh_disabled_at": "2026-11-21T08:00:01.000Z", "refresh_disabled_by": "policy", "refresh_for": "",
			"refresh_disabled_user_friendly_reason": "Cannot refresh after 1 attempt: no success for 1h"}
		if diff := cmp.Diff(last, journal[len(journal)-1]); diff != "" {
			t.Errorf("journal (-want +got):\n%s", diff)
		}
		notice := map[string]any{"event": "disabled", "attempt_no": "1", "reason": last["refresh_disabled_user_friendly_reason"], "refresh_why": last["refresh_why"]}
		if diff := cmp.Diff([]map[string]any{notice}, b.entries(":outbox")); diff != "" {
			t.Errorf("outbox (-want +got):\n%s", diff)
		}
		state := b.state()
		expectEqual(t, "attempts in the history", 1, len(state[":history:m1"].(list)))
		failIf(t, state[":due"] != nil || state[":running"] != nil,
			"expected a disabled model in no set, found %v and %v", state[":due"], state[":running"])
		counters := state[":stats"].(hash)
		failIf(t, counters["give_up"] != "1" || counters["final_failure"] != "1" || counters["start"] != "1",
			"expected one give_up that is a final failure, found %v", counters)
	})
}

func TestAnAlignmentByExpressionDecidesAndItsErrorStandsInTheJournal(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.withPolicy(`{"timeout":"1h","retries":["1m","2m"],"rrule":"FREQ=HOURLY;BYMINUTE=0;BYSECOND=0","alignment":{"expr":"k == 1 ? now + 90s : now - timeout"}}`)
		b.run("failure")
		if record := b.load("m1"); !record.RefreshAt.Equal(b.now.Add(90 * time.Second)) {
			t.Errorf("expected a start in 90s, found %s: %s", record.RefreshAt.Sub(b.now), record.Why)
		}
		b.run("failure")
		if record := b.load("m1"); !strings.Contains(record.Why, "policy_error, planned first") || record.Disabled {
			t.Errorf("expected the planned refresh first, found %q", record.Why)
		}
		stats, err := b.Report().Stats(t.Context())
		failIf(t, err != nil || stats.Counters["policy_error"] != 1, "expected a policy error, found %v, %v", stats.Counters, err)
		journal := b.entries(":journal")
		if told, _ := journal[len(journal)-1]["policy_error"].(string); !strings.HasPrefix(told, "expected a time from now to ten years on, found ") {
			t.Errorf("expected the error in the journal, found %v", journal)
		}
	})
}

func TestAMutedPolicyTellsNobodyButCountsAllTheSame(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		for notify, want := range map[string][]any{
			`[]`: nil, `["disabled"]`: {"disabled"}, `["recovered"]`: {"recovered"}, `["recovered","disabled"]`: {"disabled", "recovered"},
		} {
			b := b.fresh(t)
			b.withPolicy(`{"timeout":"1m","retries":[],"notify":` + notify + `,"on_exhausted":"give_up"}`)
			b.run("failure")
			b.mustApply(b.decide(`{"type":"enable","uid":"m1"}`))
			b.run("success")
			var told []any
			for _, notice := range b.entries(":outbox") {
				told = append(told, notice["event"])
			}
			expectEqual(t, notify+": notices", want, told)
			if counters := b.state()[":stats"].(hash); counters["final_failure"] != "1" || counters["recovered"] != "1" {
				t.Errorf("%s: expected one final failure and one recovery counted, found %v", notify, counters)
			}
		}
	})
}
