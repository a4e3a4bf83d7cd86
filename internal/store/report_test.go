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
		diff := cmp.Diff(test.want, readJournalEntry(test.values))
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

func TestTailReturnsEachTransitionOnceInOrder(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.fail("tbl_1", b.now.Add(time.Second))
		entries, last, err := b.Report().Tail(t.Context(), TailStart)
		must(t, err)
		ends := b.now.Add(policy.DefaultTimeout)
		expectEqual(t, "entries", []model.JournalEntry{
			{UID: "tbl_1", Event: model.EventCreate, At: b.now, RefreshAt: b.now, Why: "saved: refresh now"},
			{
				UID: "tbl_1", Event: model.EventStart, At: b.now, AttemptUID: "a1", AttemptNo: 1, RefreshAt: ends, DeadlineAt: ends,
				Why: "if lost: retry 1/3 at once, none planned",
			},
			{
				UID: "tbl_1", Event: model.EventFailure, At: b.now, AttemptUID: "a1", AttemptNo: 1, EndedNo: 1, Why: "final: not retryable",
				Reason: "HTTP 404", Final: true, DisabledReason: "The feed is gone",
			},
		}, entries)
		entries, again, err := b.Report().Tail(t.Context(), last)
		failIf(t, err != nil || len(entries) > 0 || again != last,
			"behind the last entry: %v, %q, %v; want none and the position %q", entries, again, err, last)
	})
}

func TestTailOutboxReturnsEachNotificationOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.fail("tbl_1", b.now)
		entries, last, err := b.Report().TailOutbox(t.Context(), TailStart)
		must(t, err)
		expectEqual(t, "entries", []model.Notification{
			{UID: "tbl_1", Notice: policy.NoticeDisabled, At: b.now, AttemptNo: 1, Reason: "The feed is gone", Why: "final: not retryable"},
		}, entries)
		entries, again, err := b.Report().TailOutbox(t.Context(), last)
		failIf(t, err != nil || len(entries) > 0 || again != last,
			"behind the last entry: %v, %q, %v; want none and the position %q", entries, again, err, last)
	})
}

func TestStatsTellsWhatTheQueueHolds(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		now := float64(b.now.UnixMilli())
		b.seed(keys{
			":due": scores{"now": now, "past": now - 1, "soon": now + 1}, ":running": scores{"r": now},
			":stale_at": scores{"a": now, "b": now, "c": now}, ":late": scores{"b": now, "c": float64(model.Never.UnixMilli())}, ":urgent": scores{"u": now}, ":stale": scores{"d": now, "e": now},
			"-input": list{"1", "2"}, "-output": list{"1", "2", "3"}, "-control": list{"1"},
			":pollers": scores{"p1": now, "p2": now, "idle": now}, ":claimed:p1": list{"o1"}, ":claimed:p2": list{"o1", "c2"},
			":rejected": list{"x"}, ":stats": hash{"start": "7", "broken": "many"},
		})
		b.mustApply(b.put("m1", "{}"))
		stats, err := b.Report().Stats(t.Context())
		must(t, err)
		b.redis.Set(t.Context(), b.Keys.Journal, "no stream", 0)
		if _, err := b.Report().Stats(t.Context()); err == nil {
			t.Error("expected a journal of another type to be told, found nothing")
		}
		expectEqual(t, "stats", Stats{
			At: b.now, Due: 4, OldestDue: b.now.Add(-time.Millisecond), Urgent: 1, Waiting: 1, Running: 1,
			ParkedBy: map[string]int64{}, Living: map[model.Role]int64{model.RoleDispatcher: 0, model.RolePoller: 3, model.RoleWorker: 0}, Freshness: FreshnessCounts{"fresh": 1, "never": 1, "late": 1, "stale": 2}, Input: 2, Output: 3, Control: 1, Claimed: 3, Errors: map[string]int64{}, Rejected: 1, Journal: 1,
			Counters: map[string]int64{"start": 7, "create": 1},
		}, stats)
	})
}

// The history keeps the newest attempts, newest first.
func TestWhenTheLastAttemptStartedStandsInTheModelAndThenInItsHistory(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.mustApply(b.put("m1", "{}"))
		var started []string
		for i := range 5 {
			b.mustApply(b.start("m1", fmt.Sprint("a", i)))
			started = append(started, model.FormatTime(b.now))
			expectEqual(t, "started_at", started[i], b.state()[":model:m1"].(hash)["started_at"])
			b.now = b.now.Add(time.Minute)
			record := b.load("m1")
			b.mustApply(record.Decide(record.Fail(policy.Failure{}, b.now), b.now))
		}
		expectEqual(t, "attempts kept", 3, len(b.state()[":history:m1"].(list)))
		b.redis.RPush(t.Context(), b.Keys.History("m1"), "no JSON")
		attempts, err := b.Report().History(t.Context(), "m1")
		must(t, err)
		var told list
		for _, a := range attempts {
			told = append(told, a.AttemptUID+" "+string(a.Outcome)+" "+model.FormatTime(a.StartedAt)+" "+a.EndedAt.Sub(a.StartedAt).String())
		}
		expectEqual(t, "attempts", list{"a4 failure " + started[4] + " 1m0s", "a3 failure " + started[3] + " 1m0s", "a2 failure " + started[2] + " 1m0s"}, told)
	}, func(c *Config) { c.HistoryCap = 3 })
}
