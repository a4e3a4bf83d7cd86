package dispatcher_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/store"
)

func TestAPassedDeadlineIsAFailureByTimeout(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.put("tbl_1")
		d := b.dispatcher(b.Store, dispatcher.Config{})
		b.round(d)
		b.Take()
		b.Clock.Turn(59999 * time.Millisecond)
		if round := b.round(d); round.TimedOut != 0 || round.Sleep != time.Millisecond {
			t.Errorf("one millisecond early: want a sleep of 1ms, got %+v", round)
		}
		b.Clock.Turn(time.Millisecond)
		if round := b.round(d); round.TimedOut != 1 {
			t.Errorf("want 1 timeout, got %+v", round)
		}
		hash := b.Model("tbl_1")
		if hash["refresh_at"] != "2026-11-21T07:01:30.000Z" || hash["refresh_why"] != "retry 1/1 +30s, none planned" || hash["attempt_no"] != "1" || hash["attempt_uid"] != "" {
			t.Errorf("want retry 1/1 at 07:01:30, got %v", hash)
		}
	})
}

func TestAnAttemptThatNobodyTookIsWithdrawnAndNotCounted(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.put("tbl_1")
		d := b.dispatcher(b.Store, dispatcher.Config{})
		b.round(d)
		const timeouts = 200
		for range timeouts {
			b.Clock.Turn(time.Minute)
			b.round(d) // withdrawn
			b.round(d) // started again
		}
		hash := b.Model("tbl_1")
		if hash["attempt_no"] != "1" || hash["refresh_disabled_until_update"] != "" || hash["failing_since"] != "" {
			t.Errorf("want the first attempt of a healthy model, got %v", hash)
		}
		if stats := b.Stats(); stats["withdrawn"] != timeouts || stats["timeout"] != 0 || stats["retry"] != 0 {
			t.Errorf("want %d withdrawn and nothing counted, got %v", timeouts, stats)
		}
		if entries := b.List(b.Store.Keys.Input); len(entries) != 1 || !strings.Contains(entries[0], hash["attempt_uid"]) {
			t.Errorf("want one entry of the current attempt, got %v", entries)
		}
	})
}

// The release before ended each entry with the version of its contract.
func TestAnAttemptThatTheReleaseBeforeQueuedIsWithdrawn(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.put("tbl_1")
		d := b.dispatcher(b.Store, dispatcher.Config{})
		b.round(d)
		input := b.Store.Keys.Input
		old := strings.TrimSuffix(b.List(input)[0], "}") + `,"v":1}`
		must(t, b.Redis.LSet(t.Context(), input, 0, old).Err())
		b.Clock.Turn(time.Minute)
		if round := b.round(d); round.Withdrawn != 1 || round.TimedOut != 0 {
			t.Errorf("want 1 withdrawn, got %+v", round)
		}
		if left := b.List(input); slices.Contains(left, old) {
			t.Errorf("want the old entry gone, got %q", left)
		}
	})
}

func TestAnAttemptTakenInTheLastMomentIsNotWithdrawn(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.put("tbl_1")
		b.round(b.dispatcher(b.Store, dispatcher.Config{}))
		b.Clock.Turn(time.Minute)
		d := b.dispatcher(&taking{b.Store, func() { b.Take() }}, dispatcher.Config{})
		if round := b.round(d); round.Taken != 1 || round.TimedOut+round.Withdrawn != 0 {
			t.Errorf("want 1 taken, got %+v", round)
		}
	})
}

// emptyAtFirst is a store in which the input list was empty when the round began: the attempt that stands there now, and has
// expired already, was started since by a dispatcher that had paused between its decision and the write.
type emptyAtFirst struct{ *store.Store }

func (s emptyAtFirst) ReadDue(ctx context.Context, asked store.DueRequest) (store.Due, error) {
	due, err := s.Store.ReadDue(ctx, asked)
	due.Queued = 0
	return due, err
}

func TestAnAttemptQueuedAndExpiredWithinARoundIsWithdrawn(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.put("tbl_1")
		b.round(b.dispatcher(b.Store, dispatcher.Config{}))
		b.Clock.Turn(time.Minute)
		round := b.round(b.dispatcher(emptyAtFirst{b.Store}, dispatcher.Config{}))
		failIf(t, round.TimedOut != 0 || round.Withdrawn != 1, "want 1 withdrawn, got %+v", round)
	})
}
