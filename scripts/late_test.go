package scripts

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/schedule"
)

// lateness keeps requests that change something, until they are delivered after their sender has given up.
type lateness struct {
	redis   redis.UniversalClient
	keeping bool
	kept    [][]redis.Cmder
}

func (l *lateness) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		return next(ctx, network, address)
	}
}

func (l *lateness) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		if !l.keeping || command.Name() == "time" {
			return next(ctx, command)
		}
		return l.keep(command)
	}
}

func (l *lateness) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		if !l.keeping {
			return next(ctx, commands)
		}
		return l.keep(commands...)
	}
}

func (l *lateness) keep(commands ...redis.Cmder) error {
	l.kept = append(l.kept, slices.Clone(commands))
	for _, command := range commands {
		command.SetErr(os.ErrDeadlineExceeded)
	}
	return os.ErrDeadlineExceeded
}

// deliver sends what was kept.
func (l *lateness) deliver(t *testing.T) {
	t.Helper()
	for _, commands := range l.kept {
		for _, command := range commands {
			if name := command.Name(); name != "multi" && name != "exec" {
				_ = l.redis.Do(t.Context(), command.Args()...).Err() // that it is refused is fine
			}
		}
	}
	l.kept = nil
}

// withLateness lets the store send what changes something through a client of which requests can be kept.
func withLateness(b *bench) *lateness {
	l := &lateness{redis: b.redis}
	write := b.server.Client(b.t)
	write.AddHook(l)
	b.clients = &Clients{Read: b.redis, Write: write, Block: b.redis, Clustered: b.clients.Clustered}
	return l
}

// verb is what an operator does, and what undoes it.
type verb struct {
	name     string
	do, undo func(b *bench) error
}

// only is the error of a verb that also tells whether it changed something.
func only(_ bool, err error) error { return err }

func verbs(t *testing.T) []verb {
	hold := func(b *bench) error {
		return b.PutHold(t.Context(), &model.Hold{ID: "h1", Since: b.now, Reason: "first"})
	}
	release := func(b *bench) error { return only(b.ReleaseHold(t.Context(), "h1", 0, b.now)) }
	limit := func(b *bench) error { return b.PutLimit(t.Context(), &model.Limit{Name: "host=h", Running: 1}, b.now) }
	noLimit := func(b *bench) error { return only(b.RemoveLimit(t.Context(), "host=h", b.now)) }
	closed, err := schedule.ParseCalendar(map[string]any{"name": "c1", "rrule": "FREQ=DAILY", "dtstart": "2026-01-01", "for": "1h"})
	must(t, err)
	calendar := func(b *bench) error { return b.PutCalendar(t.Context(), closed, b.now) }
	noCalendar := func(b *bench) error { return only(b.RemoveCalendar(t.Context(), "c1", b.now)) }
	nightly := named(t, `{"retries":"2 300s","timeout":"60 minutes","name":"nightly","rrule":"FREQ=DAILY"}`)
	put := func(b *bench) error { return b.PutPolicy(t.Context(), nightly) }
	remove := func(b *bench) error { return only(b.RemovePolicy(t.Context(), "nightly")) }
	openKey := func(b *bench) error {
		return only(b.OpenCircuit(t.Context(), "host=h", "ann", "", b.now.Add(time.Hour), b.now))
	}
	closeKey := func(b *bench) error { return only(b.CloseCircuit(t.Context(), "host=h", "ann", b.now)) }
	on := func(b *bench) error {
		return b.SetQueueCircuit(t.Context(), model.QueueCircuit{On: true, Share: 0.5, Window: time.Minute, Min: 10}, "ann")
	}
	off := func(b *bench) error {
		return b.SetQueueCircuit(t.Context(), model.QueueCircuit{Share: 0.5, Window: time.Minute, Min: 10}, "ann")
	}
	begin := func(b *bench) error {
		_, err := b.BeginBulk(t.Context(), "cancel-h1", model.Bulk{Action: model.BulkCancel})
		return err
	}
	end := func(b *bench) error { return only(b.CancelBulk(t.Context(), "cancel-h1")) }
	return []verb{
		{"hold", hold, release}, {"release", release, hold}, {"limit set", limit, noLimit}, {"limit rm", noLimit, limit},
		{"calendar put", calendar, noCalendar}, {"calendar rm", noCalendar, calendar}, {"policy put", put, remove}, {"policy rm", remove, put},
		{"circuit open", openKey, closeKey}, {"circuit close", closeKey, openKey}, {"circuit on", on, off}, {"circuit off", off, on},
		{"bulk", begin, end}, {"bulk cancel", end, begin},
	}
}

// TestALateRequestOfAVerbUndoesNothingThatWasAnsweredSince lets the request of each verb arrive after its sender has given up and done it again, and
// after others have undone that.
func TestALateRequestOfAVerbUndoesNothingThatWasAnsweredSince(t *testing.T) {
	for _, v := range verbs(t) {
		t.Run(v.name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, b *bench) {
				l := withLateness(b)
				act := func(does func(b *bench) error) {
					t.Helper()
					b.now = b.now.Add(time.Second)
					must(t, does(b))
				}
				act(v.do)
				act(v.undo)
				for _, then := range [][]func(b *bench) error{{v.do}, {v.do, v.undo}, {v.do, v.undo, v.do}, {v.do, v.undo, v.do, v.undo}} {
					l.keeping = true
					b.now = b.now.Add(time.Second)
					if err := v.do(b); !errors.Is(err, os.ErrDeadlineExceeded) || len(l.kept) != 1 {
						t.Fatalf("want one request kept, got %v and %d", err, len(l.kept))
					}
					l.keeping = false
					for _, does := range then {
						act(does)
					}
					b.unchanged(func() { l.deliver(t) })
					if len(then)%2 == 1 {
						act(v.undo)
					}
				}
			})
		})
	}
}

// TestACommandAboutTheQueueIsCarriedOutOnceAndInItsOrderWhoeverCarriesItOut lets commands be carried out by a poller that has lost the lane, and again
// by one that finds them in it, after later ones and after others have changed the same hold.
func TestACommandAboutTheQueueIsCarriedOutOnceAndInItsOrderWhoeverCarriesItOut(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		texts := list{`{"type":"hold","id":"h1","reason":"first"}`, `{"type":"release","id":"h1"}`, `{"type":"hold","id":"h1","reason":"second"}`, `{"type":"release","id":"h2"}`}
		b.seed(keys{"-control": texts})
		claimed := b.claim("p1", 10)
		steer := func(i int, want model.Outcome) {
			t.Helper()
			command, err := model.DecodeCommand([]byte(texts[i]))
			must(t, err)
			b.now = b.now.Add(time.Second)
			outcome, err := b.Steer(t.Context(), &command, Claimed{claimed[i]}, b.now)
			if err != nil || outcome != want {
				t.Errorf("%s: want %s, got %s, %v", texts[i], want, outcome, err)
			}
		}
		for i, want := range []model.Outcome{model.Applied, model.Applied, model.Applied, model.Unchanged} {
			l := withLateness(b)
			l.keeping = true
			command, err := model.DecodeCommand([]byte(texts[i]))
			must(t, err)
			if _, err := b.Steer(t.Context(), &command, Claimed{claimed[i]}, b.now); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("want the request kept, got %v", err)
			}
			l.keeping = false
			steer(i, want)
			b.unchanged(func() {
				l.deliver(t)
				steer(i, want) // as after a kill
				for before := range i {
					steer(before, model.Unchanged) // by one that has lost the lane
				}
			})
		}
		must(t, only(b.ReleaseHold(t.Context(), "h1", 0, b.now)))
		b.unchanged(func() { steer(2, model.Unchanged) })
	})
}
