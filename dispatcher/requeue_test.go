package dispatcher_test

import (
	"context"
	"testing"
	"time"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
)

// runConcurrently applies what the poller does when a worker says that it has begun.
func (b *bundle) begin(uid string, now time.Time) {
	b.t.Helper()
	records, err := b.Store.Load(context.Background(), []string{uid})
	must(b.t, err)
	decision, _ := records[uid].Begin(now, "dead")
	b.Commit(now, records[uid].Decide(decision, now))
}

func TestAnAttemptOfADeadWorkerTimesOutAtItsDeadline(t *testing.T) {
	never := func(*bundle, store.ExpiredWorker) (int, error) { return 0, nil }
	inTime := func(b *bundle, expired store.ExpiredWorker) (int, error) {
		return b.Store.Pool().Requeue(context.Background(), expired)
	}
	tooLate := func(b *bundle, expired store.ExpiredWorker) (int, error) {
		b.Clock.Turn(time.Hour)
		return inTime(b, expired)
	}
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		for name, test := range map[string]struct {
			begun                 bool
			requeue               func(*bundle, store.ExpiredWorker) (int, error)
			wantTimeout, wantBack int
		}{
			"nobody looked":                      {true, never, 1, 0},
			"nobody looked, not begun":           {false, never, 1, 0},
			"requeued in time":                   {true, inTime, 1, 0},
			"requeued in time, never begun":      {false, inTime, 0, 1},
			"requeued too late":                  {true, tooLate, 1, 0},
			"requeued too late, not yet applied": {false, tooLate, 1, 0},
		} {
			t.Run(name, func(t *testing.T) {
				server.Flush(t)
				b := setup(t, server)
				d, expired := b.takenByADeadWorker()
				if test.begun {
					b.begin("tbl_1", expired.LastHeartbeat)
				}
				if _, err := test.requeue(b, expired); err != nil {
					t.Fatal(err)
				}
				b.Clock.Turn(time.Hour)
				if round := b.round(d); round.TimedOut != test.wantTimeout || round.Withdrawn != test.wantBack {
					t.Errorf("want %d timeouts and %d withdrawn, got %+v", test.wantTimeout, test.wantBack, round)
				}
				if left := b.List(b.Store.Keys.Input); len(left) > 0 {
					t.Errorf("want its entry gone, got %v", left)
				}
			})
		}
	})
}

// takenByADeadWorker starts an attempt that a worker takes and does nothing with.
func (b *bundle) takenByADeadWorker() (*dispatcher.Dispatcher, store.ExpiredWorker) {
	b.t.Helper()
	b.put("tbl_1")
	d := b.dispatcher(b.Store, dispatcher.Config{})
	b.round(d)
	taken, err := b.Store.Pool().Take(context.Background(), store.TakeRequest{Owner: "dead", New: true, Most: 1})
	if err != nil || len(taken.Entries) != 1 {
		b.t.Fatalf("took %q, %v", taken.Entries, err)
	}
	return d, store.ExpiredWorker{Owner: "dead", LastHeartbeat: taken.Now}
}
