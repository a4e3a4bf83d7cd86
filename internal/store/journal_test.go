package store

import (
	"fmt"
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
				"refresh_at": "2026-11-21T07:01:00.001Z", "deadline_at": "2026-11-21T07:02:00.001Z", "refresh_why": "retry 2/3 +1m",
				"reason": "HTTP 503", "error_type": "http_503", "changed": "false", "policy_error": "no such field", "held": "1",
				"final": "1", "refresh_disabled_user_friendly_reason": "The feed is gone",
			},
			model.JournalEntry{
				UID: "tbl_1", Event: model.EventFailure, At: at, AttemptUID: "a1", AttemptNo: 2, EndedNo: 2,
				RefreshAt: at.Add(time.Minute), DeadlineAt: at.Add(2 * time.Minute), Why: "retry 2/3 +1m",
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
		if diff := cmp.Diff(test.want, readJournalEntry(test.values)); diff != "" {
			t.Errorf("read %v (-want +got):\n%s", test.values, diff)
		}
	}
}

func TestTheJournalIsCappedWithinOneNode(t *testing.T) {
	few := func(c *Config) { c.JournalCap = 100 }
	everywhere(t, func(t *testing.T, b *bench) {
		record := b.load("m1")
		var batch []*Transition
		for i := range 450 {
			batch = append(batch, b.save(record, fmt.Sprintf(`{"n":%d}`, i)))
		}
		b.mustApply(batch...)
		if n := len(b.state()[":journal"].(events)); n < 100 || n > 200 {
			t.Errorf("journal holds %d entries, want 100 to 200", n)
		}
	}, few)
}

func TestAnImportOfAsManyModelsAsTheJournalHoldsDisplacesNothingOfIt(t *testing.T) {
	few := func(c *Config) { c.JournalCap = 100 }
	everywhere(t, func(t *testing.T, b *bench) {
		b.mustApply(b.put("old", "{}"))
		b.mustApply(b.start("old", "a1"))
		record := b.load("old")
		b.mustApply(record.Decide(record.Fail(policy.Failure{Reason: "HTTP 503"}, b.now), b.now))
		var batch []*Transition
		for i := range 450 {
			batch = append(batch, b.put(fmt.Sprint("new", i), "{}"))
		}
		b.mustApply(batch...)
		if journal := b.state()[":journal"].(events); len(journal) != 3 || journal[2]["reason"] != "HTTP 503" {
			t.Errorf("want what was told before in the journal, got %v", journal)
		}
	}, few)
}
