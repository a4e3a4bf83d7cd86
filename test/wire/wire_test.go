package wire

import (
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
)

func TestASuccessWithStatusAndProgress(t *testing.T) {
	t.Parallel()
	withEachWorker(t, func(t *testing.T, o *outside) {
		o.put("tbl", "1h", plan{{
			{"type": "started", "worker": "w1"},
			{"type": "user_friendly_status", "status": "half of it", "progress": 50},
			{"type": "success", "changed": false},
		}})
		tbl := o.await("bigtables:model:tbl", "last_success_at", "*")
		for field, want := range map[string]string{
			"user_friendly_status": "half of it", "progress": "50", "refresh_why": "finished: one-shot", "attempt_no": "", "attempt_uid": "", "refresh_at": "",
		} {
			if tbl[field] != want {
				t.Errorf("%s: want %q, got %q", field, want, tbl[field])
			}
		}
		o.count(map[string]string{"start": "1", "started": "1", "status": "1", "success": "1", "success_unchanged": "1"})
	})
}

func TestWhatIsNotForTheCurrentAttemptChangesNothing(t *testing.T) {
	t.Parallel()
	withEachWorker(t, func(t *testing.T, o *outside) {
		o.say("garbage")
		o.put("tbl", "1h", plan{{
			{"type": "success", "request_attempt_uid": "old", "refresh_attempt_uid": "old"},
			{"type": "success", "big_table_uid": "nobody"},
			{"type": "dance"},
			{"type": "failure", "reason": "once"},
			{"type": "failure", "reason": "twice"},
		}, {{"type": "success"}}})
		o.await("bigtables:model:tbl", "last_success_at", "*")
		o.count(map[string]string{
			"malformed": "1", "stale": "1", "unknown_model": "1", "unknown_type": "1", "duplicate": "1",
			"start": "2", "failure": "1", "success": "1",
		})
		if rejected := o.length("bigtables:rejected"); rejected != 3 {
			t.Errorf("want garbage, unknown model and unknown type kept, got %d", rejected)
		}
	})
}

func TestWithoutAnyWorkerNobodyIsDisabledAndNothingCounted(t *testing.T) {
	t.Parallel()
	withEachPlace(t, func(t *testing.T, o *outside) {
		o.put("tbl", "50ms", plan{})
		testkit.Eventually(t, "20 attempts are withdrawn", func() bool { return number(o.hash("bigtables:stats")["withdrawn"]) >= 20 })
		tbl := o.await("bigtables:model:tbl", "attempt_uid", "*")
		if tbl["attempt_no"] != "1" || tbl["refresh_disabled_until_update"] != "" || tbl["failing_since"] != "" {
			t.Errorf("want a healthy model in its first attempt, got %v", tbl)
		}
		if stats := o.hash("bigtables:stats"); stats["timeout"]+stats["retry"]+stats["failure"] != "" {
			t.Errorf("want nothing counted as a failure, got %v", stats)
		}
		if queued := o.length("bigtables-input"); queued > 1 {
			t.Errorf("want at most one entry in the input list, got %d", queued)
		}
	})
}
