package dispatcher_test

import (
	"context"
	"testing"
	"time"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/redistest"
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
	if _, err := b.Store.Apply(context.Background(), []*scripts.Transition{records[uid].Decide(decision, now)}, "", 0, now); err != nil {
		b.t.Fatal(err)
	}
}

func TestAnAttemptOfADeadWorkerTimesOutAtItsDeadline(t *testing.T) {
	redistest.Both(t, func(t *testing.T, server *redistest.Server) {
		for name, handBack := range map[string]func(b *bundle, silent scripts.SilentWorker) (int, error){
			"nobody looked": func(*bundle, scripts.SilentWorker) (int, error) { return 0, nil },
			"handed back in time": func(b *bundle, silent scripts.SilentWorker) (int, error) {
				return b.Store.HandBack(context.Background(), silent)
			},
			"handed back too late": func(b *bundle, silent scripts.SilentWorker) (int, error) {
				b.Clock.Turn(time.Hour)
				return b.Store.HandBack(context.Background(), silent)
			},
		} {
			t.Run(name, func(t *testing.T) {
				server.Flush(t)
				b := setup(t, server)
				b.put("tbl_1")
				d := b.dispatcher(b.Store, dispatcher.Config{})
				b.round(d)
				now, err := b.Store.Now(t.Context())
				if err == nil {
					_, err = b.Store.Take(t.Context(), scripts.Taking{Owner: "dead", New: true, Most: 1})
				}
				if err != nil {
					t.Fatal(err)
				}
				b.begin("tbl_1", now)
				if _, err := handBack(b, scripts.SilentWorker{Owner: "dead", LastSign: now}); err != nil {
					t.Fatal(err)
				}
				b.Clock.Turn(time.Hour)
				if round := b.round(d); round.TimedOut != 1 || round.Withdrawn != 0 {
					t.Errorf("want 1 timeout, got %+v", round)
				}
				if left := b.List(b.Store.Keys.Input()); len(left) > 0 {
					t.Errorf("want its entry gone, got %v", left)
				}
			})
		}
	})
}
