package dispatcher_test

import (
	"context"
	"testing"
	"time"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/scripts"
)

// emptyAtFirst is a store in which the input list was empty when the round began: the attempt that stands there now, and has
// expired already, was started since by a dispatcher that had slept over its own decision.
type emptyAtFirst struct{ *scripts.Store }

func (s emptyAtFirst) ReadDue(ctx context.Context, limit int) (scripts.Due, error) {
	due, err := s.Store.ReadDue(ctx, limit)
	due.Queued = 0
	return due, err
}

func TestAnAttemptQueuedAndExpiredWithinARoundIsWithdrawn(t *testing.T) {
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		b := setup(t, server)
		b.put("tbl_1")
		b.round(b.dispatcher(b.Store, dispatcher.Config{}))
		b.Clock.Turn(time.Minute)
		round := b.round(b.dispatcher(emptyAtFirst{b.Store}, dispatcher.Config{}))
		if round.TimedOut != 0 || round.Withdrawn != 1 {
			t.Errorf("want 1 withdrawn, got %+v", round)
		}
	})
}
