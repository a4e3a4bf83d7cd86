package wire

import (
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit/check"
)

type say = map[string]any

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
			failIf(t, tbl[field] != want, "%s: want %q, got %q", field, want, tbl[field])
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
		rejected := o.length("bigtables:rejected")
		failIf(t, rejected != 3, "want garbage, unknown model and unknown type kept, got %d", rejected)
	})
}

func TestWithoutAnyWorkerNobodyIsDisabledAndNothingCounted(t *testing.T) {
	t.Parallel()
	withEachPlace(t, func(t *testing.T, o *outside) {
		o.put("tbl", "50ms", plan{})
		check.Eventually(t, "20 attempts are withdrawn", func() bool { return number(o.hash("bigtables:stats")["withdrawn"]) >= 20 })
		tbl := o.await("bigtables:model:tbl", "attempt_uid", "*")
		failIf(t, tbl["attempt_no"] != "1" || tbl["refresh_disabled_until_update"] != "" || tbl["failing_since"] != "",
			"want a healthy model in its first attempt, got %v", tbl)
		stats := o.hash("bigtables:stats")
		failIf(t, stats["timeout"]+stats["retry"]+stats["failure"] != "", "want nothing counted as a failure, got %v", stats)
		queued := o.length("bigtables-input")
		failIf(t, queued > 1, "want at most one entry in the input list, got %d", queued)
	})
}

func TestAThumbnailIsTriedFourTimesAndThenItsOwnerIsTold(t *testing.T) {
	t.Parallel()
	withEachWorker(t, func(t *testing.T, o *outside) {
		fail := []say{{"type": "failure", "reason": "HTTP 503"}}
		last := []say{{"type": "failure", "reason": "HTTP 503", "user_friendly_reason": "thumbnail creation failed"}}
		o.put("banner", "1m", plan{fail, fail, fail, last})

		o.await("bigtables:model:banner", "refresh_why", "retry 2 of 3 after 1m") // the first retry was at once
		delay := o.lastDelay("banner")
		failIf(t, delay != time.Minute, "second failure: want a retry after 1m, got %s", delay)
		o.command(say{"type": "run", "uid": "banner"})
		o.await("bigtables:model:banner", "refresh_why", "retry 3 of 3 after 5m")
		if delay := o.lastDelay("banner"); delay != 5*time.Minute {
			t.Errorf("third failure: want a retry after 5m, got %s", delay)
		}
		o.command(say{"type": "run", "uid": "banner"})
		banner := o.await("bigtables:model:banner", "refresh_disabled_until_update", "1")
		failIf(t, banner["refresh_disabled_user_friendly_reason"] != "thumbnail creation failed" || banner["refresh_at"] != "" || banner["attempt_no"] != "4",
			"want it disabled after 4 attempts with the worker's words, got %v", banner)
		o.count(map[string]string{"start": "4", "retry": "3", "failure": "4", "exhausted": "1", "final_failure": "1"})
		outbox := o.cli("XRANGE", "bigtables:outbox", "-", "+")
		failIf(t, !strings.Contains(outbox, "disabled") || !strings.Contains(outbox, "thumbnail creation failed"),
			"want a notification with the reason, got %s", outbox)
	})
}

func TestAnApplicationSteersAModelWithCommands(t *testing.T) {
	t.Parallel()
	withEachPlace(t, func(t *testing.T, o *outside) {
		o.command(say{"type": "put", "uid": "tbl", "rrule": "FREQ=DAILY;BYHOUR=6,16;BYMINUTE=0;BYSECOND=0", "timezone": "Europe/Berlin"})
		o.await("bigtables:model:tbl", "refresh_why", "planned")
		o.command(say{"type": "run", "uid": "tbl"})
		o.await("bigtables:model:tbl", "attempt_no", "1")
		o.command(say{"type": "run", "uid": "tbl"})
		o.count(map[string]string{"busy": "1"})
		o.command(say{"type": "disable", "uid": "tbl", "reason": "not paid"})
		tbl := o.await("bigtables:model:tbl", "refresh_disabled_until_update", "1")
		failIf(t, tbl["refresh_disabled_user_friendly_reason"] != "not paid" || tbl["attempt_uid"] != "",
			"want it disabled without an attempt, got %v", tbl)
		o.command(say{"type": "enable", "uid": "tbl"})
		o.await("bigtables:model:tbl", "refresh_why", "planned")
		o.command(say{"type": "remove", "uid": "tbl"})
		o.count(map[string]string{"remove": "1"})
		left := o.find("bigtables:*:tbl")
		failIf(t, left != "", "want every key of the model gone, got %s", left)
		o.command(say{"type": "put", "uid": "tbl", "colour": "red"})
		o.count(map[string]string{"malformed": "1"})
		rejected := o.cli("LINDEX", "bigtables:rejected", "-1")
		failIf(t, !strings.Contains(rejected, "colour: expected one of uid, "), "want the unknown field named, got %s", rejected)
	})
}
