package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

func TestAJournalEntryIsReadByTheNamesOfItsFields(t *testing.T) {
	at, no := time.Date(2026, 11, 21, 7, 0, 0, 1_000_000, time.UTC), false
	for _, test := range []struct {
		values map[string]any
		want   model.JournalEntry
	}{
		{
			map[string]any{
				"uid": "tbl_1", "event": "failure", "at": "2026-11-21T07:00:00.001Z", "last_attempt_uid": "a1", "ended_attempt_no": "2",
				"refresh_at": "2026-11-21T07:01:00.001Z", "deadline_at": "2026-11-21T07:02:00.001Z", "refresh_why": "retry 2 of 3 after 1m",
				"reason": "HTTP 503", "error_type": "http_503", "changed": "false", "policy_error": "no such field", "held": "1",
				"final": "1", "refresh_disabled_user_friendly_reason": "The feed is gone",
			},
			model.JournalEntry{
				UID: "tbl_1", Event: model.EventFailure, At: at, AttemptUID: "a1", AttemptNo: 2, EndedNo: 2,
				RefreshAt: at.Add(time.Minute), DeadlineAt: at.Add(2 * time.Minute), Why: "retry 2 of 3 after 1m",
				Reason: "HTTP 503", ErrorType: "http_503", Changed: &no, PolicyError: "no such field", Held: true,
				Final: true, DisabledReason: "The feed is gone",
			},
		},
		{
			map[string]any{"uid": "tbl_1", "event": "disable", "at": "2026-11-21T07:00:00.001Z", "attempt_uid": "", "ended_attempt_no": "2", "ended_attempt_uid": "a2"},
			model.JournalEntry{UID: "tbl_1", Event: model.EventDisable, At: at, AttemptUID: "a2", AttemptNo: 2, EndedNo: 2, EndedUID: "a2"},
		},
		{ // what cannot be read is left out
			map[string]any{"uid": "tbl_1", "event": "success", "at": "yesterday", "attempt_no": "-3", "changed": "maybe"},
			model.JournalEntry{UID: "tbl_1", Event: model.EventSuccess},
		},
	} {
		diff := cmp.Diff(test.want, ReadJournalEntry(test.values))
		failIf(t, diff != "", "read %v (-want +got):\n%s", test.values, diff)
	}
}

func TestTheJournalIsCappedWithinOneNode(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		record := b.load("m1")
		var batch []*Transition
		for i := range 450 {
			batch = append(batch, b.save(record, fmt.Sprintf(`{"n":%d}`, i)))
		}
		b.mustApply(batch...)
		n := len(b.state()[":journal"].(events))
		failIf(t, n < 100 || n > 200, "journal holds %d entries, want 100 to 200", n)
	}, func(c *Config) { c.JournalCap = 100 })
}

func TestAnImportOfAsManyModelsAsTheJournalHoldsDisplacesNothingOfIt(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.fail("old", b.now)
		var batch []*Transition
		for i := range 450 {
			record := &Record{Model: model.Model{UID: fmt.Sprint("new", i), Policy: policy.Default()}}
			batch = append(batch, b.save(record, "{}"))
		}
		b.mustApply(batch...)
		journal := b.state()[":journal"].(events)
		failIf(t, len(journal) != 3 || journal[2]["reason"] != "HTTP 404", "want what was told before in the journal, got %v", journal)
	}, func(c *Config) { c.JournalCap = 100 })
}

// fail saves a model whose first attempt fails for good at an instant.
func (b *bench) fail(uid string, at time.Time) {
	b.t.Helper()
	b.mustApply(b.put(uid, "{}"))
	b.mustApply(b.start(uid, "a1"))
	record := b.load(uid)
	failure := policy.Failure{Reason: "HTTP 404", Retryable: new(bool), UserFriendlyReason: "The feed is gone"}
	b.mustApply(record.Decide(record.Fail(failure, at), at))
}

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
			"interrupted": func() model.Decision { return interrupted(record, b.now) },
			"withdrawn":   func() model.Decision { return record.Withdraw(b.now) },
		}[end]()
		b.mustApply(record.Decide(decision, b.now))
	}
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
		counters := b.state()[":stats"].(hash)
		failIf(t, counters["policy_error"] != "2", "expected 2 policy errors, found %v", counters)
		var told []any
		for _, entry := range b.entries(":journal") {
			if entry["event"] == "failure" {
				told = append(told, entry["policy_error"])
			}
		}
		const soon = `expr: expected a duration such as "90s", "1h30m", "PT5M" or "10 minutes", found "soon" (no number where one is expected)`
		failIf(t, len(told) != 3 || told[0] != nil || told[1] != told[2] || !strings.HasPrefix(told[1].(string), soon[:60]),
			"expected the error of the second and the third failure, found %q", told)
		if record := b.load("m1"); record.Why != "retry 3 after 5m, policy_error" || record.Disabled {
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
		if m1, m2 = b.load("m1"), b.load("m2"); m1.Why != "rule takes too many steps: checked again then" || m2.Why != "planned" {
			t.Errorf("expected m1 to look again and m2 to be planned, found %q and %q", m1.Why, m2.Why)
		}
		if counters := b.state()[":stats"].(hash); counters["policy_error"] != "2" { // of its start and of its end
			t.Errorf("expected 2 policy errors, found %v", counters)
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
		last := map[string]any{"event": "give_up", "final": "1", "refresh_at": "", "refresh_why": "disabled, no success for 1h",
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
		if record := b.load("m1"); !strings.Contains(record.Why, "waits for planned, policy_error") || record.Disabled {
			t.Errorf("expected it to wait for the planned refresh, found %q", record.Why)
		}
		counters := b.state()[":stats"].(hash)
		failIf(t, counters["policy_error"] != "1", "expected a policy error, found %v", counters)
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
