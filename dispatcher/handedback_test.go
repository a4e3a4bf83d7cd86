package dispatcher_test

import (
	"context"
	"testing"
	"time"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/scripts"
)

// begin applies what the poller does when a worker says that it has begun.
func (b *bundle) begin(uid string, now time.Time) {
	b.t.Helper()
	records, err := b.Store.Load(context.Background(), []string{uid})
	if err != nil {
		b.t.Fatal(err)
	}
	decision, _ := records[uid].Begin(now, "dead")
	b.Commit(now, records[uid].Decide(decision, now))
}

func TestAnAttemptOfADeadWorkerTimesOutAtItsDeadline(t *testing.T) {
	never := func(*bundle, scripts.ExpiredWorker) (int, error) { return 0, nil }
	inTime := func(b *bundle, silent scripts.ExpiredWorker) (int, error) {
		return b.Store.Requeue(context.Background(), silent)
	}
	tooLate := func(b *bundle, silent scripts.ExpiredWorker) (int, error) {
		b.Clock.Turn(time.Hour)
		return inTime(b, silent)
	}
	testkit.Both(t, func(t *testing.T, server *testkit.Server) {
		for name, test := range map[string]struct {
			begun                 bool
			handBack              func(*bundle, scripts.ExpiredWorker) (int, error)
			wantTimeout, wantBack int
		}{
			"nobody looked":                         {true, never, 1, 0},
			"nobody looked, not begun":              {false, never, 1, 0},
			"handed back in time":                   {true, inTime, 1, 0},
			"handed back in time, never begun":      {false, inTime, 0, 1},
			"handed back too late":                  {true, tooLate, 1, 0},
			"handed back too late, not yet applied": {false, tooLate, 1, 0},
		} {
			t.Run(name, func(t *testing.T) {
				server.Flush(t)
				b := setup(t, server)
				d, silent := b.takenByTheDead()
				if test.begun {
					b.begin("tbl_1", silent.LastHeartbeat)
				}
				if _, err := test.handBack(b, silent); err != nil {
					t.Fatal(err)
				}
				b.Clock.Turn(time.Hour)
				if round := b.round(d); round.TimedOut != test.wantTimeout || round.Withdrawn != test.wantBack {
					t.Errorf("want %d timeouts and %d withdrawn, got %+v", test.wantTimeout, test.wantBack, round)
				}
				if left := b.List(b.Store.Keys.Input()); len(left) > 0 {
					t.Errorf("want its entry gone, got %v", left)
				}
			})
		}
	})
}

// takenByTheDead starts an attempt that a worker takes and does nothing with.
func (b *bundle) takenByTheDead() (*dispatcher.Dispatcher, scripts.ExpiredWorker) {
	b.t.Helper()
	b.put("tbl_1")
	d := b.dispatcher(b.Store, dispatcher.Config{})
	b.round(d)
	taken, err := b.Store.Take(context.Background(), scripts.TakeRequest{Owner: "dead", New: true, Most: 1})
	if err != nil || len(taken.Entries) != 1 {
		b.t.Fatalf("took %q, %v", taken.Entries, err)
	}
	return d, scripts.ExpiredWorker{Owner: "dead", LastHeartbeat: taken.Now}
}
