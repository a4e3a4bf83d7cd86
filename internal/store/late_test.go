package store

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/schedule"
)

// lateness keeps requests that change something, until they are delivered after their sender has given up.
type lateness struct {
	redis    goredis.UniversalClient
	keeping  bool
	watching []string
	kept     []func(context.Context)
}

func (l *lateness) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (l *lateness) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, command goredis.Cmder) error {
		if name := command.Name(); name == "watch" || name == "unwatch" {
			l.watching = nil
			for _, key := range command.Args()[1:] {
				l.watching = append(l.watching, key.(string))
			}
		}
		if !l.keeping || changesNothing(command) {
			return next(ctx, command)
		}
		l.watching = nil
		return l.store(ctx, command)
	}
}

func (l *lateness) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, commands []goredis.Cmder) error {
		if !l.keeping || !slices.ContainsFunc(commands, func(c goredis.Cmder) bool { return !changesNothing(c) }) {
			return next(ctx, commands)
		}
		return l.store(ctx, slices.DeleteFunc(slices.Clone(commands), func(c goredis.Cmder) bool { return c.Name() == "multi" || c.Name() == "exec" })...)
	}
}

// changesNothing is also said of WATCH, without which a transaction would not compare.
func changesNothing(command goredis.Cmder) bool {
	name := strings.ToUpper(command.Name())
	return readOnly.MatchString(name) || slices.Contains([]string{"WATCH", "UNWATCH", "TTL", "HELLO", "CLUSTER", "COMMAND"}, name)
}

func (l *lateness) store(ctx context.Context, commands ...goredis.Cmder) error {
	send := func(ctx context.Context, to goredis.Cmdable) error {
		_, err := to.TxPipelined(ctx, func(pipe goredis.Pipeliner) error {
			for _, command := range commands {
				_ = pipe.Do(ctx, command.Args()...).Err()
			}
			return nil
		})
		return err // that it is refused is fine
	}
	deliver := func(ctx context.Context) { _ = send(ctx, l.redis) }
	if len(l.watching) > 0 { // another connection, which watches from now on as that of the sender does
		watches, sends, gone := make(chan struct{}), make(chan struct{}), make(chan struct{})
		go func() {
			defer close(gone)
			_ = l.redis.Watch(ctx, func(tx *goredis.Tx) error {
				close(watches)
				<-sends
				return send(ctx, tx)
			}, l.watching...)
		}()
		<-watches
		deliver = func(context.Context) { close(sends); <-gone }
	}
	l.kept = append(l.kept, deliver)
	for _, command := range commands {
		command.SetErr(os.ErrDeadlineExceeded)
	}
	return os.ErrDeadlineExceeded
}

// keep keeps the one request by which a call would change something.
func (l *lateness) keep(t *testing.T, call func() error) {
	t.Helper()
	l.keeping = true
	had := len(l.kept)
	err := call()
	stopIf(t, !errors.Is(err, os.ErrDeadlineExceeded) || len(l.kept) != had+1, "want one request kept, got %v and %d", err, len(l.kept)-had)
	l.keeping = false
}

func (l *lateness) deliver(t *testing.T) {
	t.Helper()
	for _, deliver := range l.kept {
		deliver(t.Context())
	}
	l.kept = nil
}

// withLateness lets the store send what changes something through a client of which requests can be kept.
func withLateness(b *bench) *lateness {
	l := &lateness{redis: b.redis}
	write := b.server.Client(b.t)
	write.AddHook(l)
	if cluster, is := write.(*goredis.ClusterClient); is { // a transaction goes to its node
		cluster.OnNewNode(func(node *goredis.Client) { node.AddHook(l) })
	}
	b.Clients = &redis.Clients{Read: b.redis, Write: write, Block: b.redis, Clustered: b.Clients.Clustered}
	return l
}

// verb is what an operator does, and what undoes it.
type verb struct {
	name     string
	do, undo func(b *bench) error
}

func verbs(t *testing.T) []verb {
	hold := func(b *bench) error {
		return b.Fleet().PutHold(t.Context(), &model.Hold{ID: "h1", Since: b.now, Reason: "first"})
	}
	release := func(b *bench) error { return only(b.Fleet().ReleaseHold(t.Context(), "h1", 0, b.now)) }
	limit := func(b *bench) error {
		return b.Fleet().PutLimit(t.Context(), &model.Limit{Name: "host=h", Running: 1}, b.now)
	}
	noLimit := func(b *bench) error { return only(b.Fleet().RemoveLimit(t.Context(), "host=h", b.now)) }
	closed, err := schedule.ParseCalendar(map[string]any{"name": "c1", "rrule": "FREQ=DAILY", "dtstart": "2026-01-01", "for": "1h"})
	must(t, err)
	calendar := func(b *bench) error { return b.Fleet().PutCalendar(t.Context(), closed, b.now) }
	noCalendar := func(b *bench) error { return only(b.Fleet().RemoveCalendar(t.Context(), "c1", b.now)) }
	nightly := named(t, `{"retries":"2 300s","timeout":"60 minutes","name":"nightly","rrule":"FREQ=DAILY"}`)
	put := func(b *bench) error { return b.Fleet().PutPolicy(t.Context(), nightly) }
	remove := func(b *bench) error { return only(b.Fleet().RemovePolicy(t.Context(), "nightly")) }
	openKey := func(b *bench) error {
		return only(b.Fleet().OpenCircuit(t.Context(), "host=h", "ann", "", b.now.Add(time.Hour), b.now))
	}
	closeKey := func(b *bench) error { return only(b.Fleet().CloseCircuit(t.Context(), "host=h", "ann", b.now)) }
	on := func(b *bench) error {
		return b.Fleet().SetQueueCircuit(t.Context(), model.QueueCircuit{On: true, Share: 0.5, Window: time.Minute, Min: 10}, "ann")
	}
	off := func(b *bench) error {
		return b.Fleet().SetQueueCircuit(t.Context(), model.QueueCircuit{Share: 0.5, Window: time.Minute, Min: 10}, "ann")
	}
	begin := func(b *bench) error {
		_, err := b.Fleet().BeginBulk(t.Context(), "cancel-h1", model.Bulk{Action: model.BulkCancel})
		return err
	}
	end := func(b *bench) error { return only(b.Fleet().CancelBulk(t.Context(), "cancel-h1")) }
	onQueue := func(do func(q *Queue) error) func(b *bench) error {
		return func(b *bench) error {
			q, err := Open(t.Context(), b.Clients, Config{Queue: b.Keys.Queue})
			must(t, err)
			return do(q)
		}
	}
	above := func(models int) func(b *bench) error {
		return onQueue(func(q *Queue) error { return q.SetNewErrorAbove(t.Context(), models) })
	}
	wire := func(name string) func(b *bench) error {
		return onQueue(func(q *Queue) error { return q.SetWire(t.Context(), model.Wire{ModelName: name}, true) })
	}
	return []verb{
		{"hold", hold, release}, {"release", release, hold}, {"limit set", limit, noLimit}, {"limit rm", noLimit, limit},
		{"calendar put", calendar, noCalendar}, {"calendar rm", noCalendar, calendar}, {"policy put", put, remove}, {"policy rm", remove, put},
		{"circuit open", openKey, closeKey}, {"circuit close", closeKey, openKey}, {"circuit on", on, off}, {"circuit off", off, on},
		{"bulk", begin, end}, {"bulk cancel", end, begin},
		{"queue set --new-error-above", above(9), above(5)}, {"queue set --model-name", wire("banner"), wire("feed")},
	}
}

// TestALateRequestOfAVerbUndoesNothingThatWasAnsweredSince lets the request of each verb arrive after its sender has given up and done it again, and
// after others have undone that.
func TestALateRequestOfAVerbUndoesNothingThatWasAnsweredSince(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		for _, v := range verbs(t) {
			t.Run(v.name, func(t *testing.T) {
				b := b.fresh(t)
				l := withLateness(b)
				act := func(does func(b *bench) error) {
					t.Helper()
					b.now = b.now.Add(time.Second)
					must(t, does(b))
				}
				act(v.do)
				act(v.undo)
				for _, then := range [][]func(b *bench) error{{v.do}, {v.do, v.undo}, {v.do, v.undo, v.do}, {v.do, v.undo, v.do, v.undo}} {
					b.now = b.now.Add(time.Second)
					l.keep(t, func() error { return v.do(b) })
					for _, does := range then {
						act(does)
					}
					b.unchanged(func() { l.deliver(t) })
					if len(then)%2 == 1 {
						act(v.undo)
					}
				}
			})
		}
	})
}

// TestACommandAboutTheQueueIsCarriedOutOnceAndInItsOrderWhoeverCarriesItOut lets commands be carried out by a former leader, and again
// by one that finds them in it, after later ones and after others have changed the same hold.
func TestACommandAboutTheQueueIsCarriedOutOnceAndInItsOrderWhoeverCarriesItOut(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		texts := list{`{"type":"hold","id":"h1","reason":"first"}`, `{"type":"release","id":"h1"}`, `{"type":"hold","id":"h1","reason":"second"}`, `{"type":"release","id":"h2"}`}
		b.seed(keys{"-control": texts})
		claimed := b.claim("p1", 10)
		steer := func(i int, want model.Outcome) {
			t.Helper()
			b.now = b.now.Add(time.Second)
			outcome, err := b.ApplyQueueCommand(t.Context(), commandOf(t, texts[i]), Claimed{claimed[i]}, b.now)
			failIf(t, err != nil || outcome != want, "%s: want %s, got %s, %v", texts[i], want, outcome, err)
		}
		for i, want := range []model.Outcome{model.Applied, model.Applied, model.Applied, model.Unchanged} {
			l := withLateness(b)
			l.keep(t, func() error {
				return only(b.ApplyQueueCommand(t.Context(), commandOf(t, texts[i]), Claimed{claimed[i]}, b.now))
			})
			steer(i, want)
			b.unchanged(func() {
				l.deliver(t)
				steer(i, want) // as after a kill
				for before := range i {
					steer(before, model.Unchanged) // by a former leader
				}
			})
		}
		must(t, only(b.Fleet().ReleaseHold(t.Context(), "h1", 0, b.now)))
		b.unchanged(func() { steer(2, model.Unchanged) })
	})
}

// TestALateRepairOfABulkLeavesTheOneThatHasBegunSinceWhereItIs lets the doctor take an id off the list whose bulk is gone or over.
func TestALateRepairOfABulkLeavesTheOneThatHasBegunSinceWhereItIs(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		for name, body := range map[string]hash{"gone": nil, "over": {"since": "2026-01-01T00:00:00.000Z", "ended": "done", "ended_at": "2026-01-01T00:00:00.000Z"}} {
			t.Run(name, func(t *testing.T) {
				b := b.fresh(t)
				orphan := func() (bulk Bulk) {
					b.seed(keys{":bulks": scores{"cancel-h1": six}})
					if body != nil {
						b.seed(keys{":bulk:cancel-h1": body})
					}
					bulk, _, _, err := b.Fleet().FindBulk(t.Context(), "cancel-h1")
					must(t, err)
					bulk.ID, bulk.Cancelled = "cancel-h1", true
					return bulk
				}
				bulk := orphan()
				moved, err := b.MoveBulk(t.Context(), &bulk, b.now)
				stopIf(t, moved || err != nil, "want nothing moved, got %t, %v", moved, err)
				bulks := b.state()[":bulks"]
				stopIf(t, bulks != nil, "want the id off the list, found %v", bulks)
				bulk = orphan()
				l := withLateness(b)
				l.keep(t, func() error { return only(b.MoveBulk(t.Context(), &bulk, b.now)) })
				must(t, only(b.Fleet().BeginBulk(t.Context(), "cancel-h1", model.Bulk{Action: model.BulkCancel})))
				b.unchanged(func() { l.deliver(t) })
			})
		}
	})
}

func TestABulkThatBeginsAnewWithinAMillisecondIsAnotherOne(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) { // where time stands still
		for _, reason := range []string{"first", "second"} {
			must(t, only(b.Fleet().CancelBulk(t.Context(), "late")))
			must(t, only(b.Fleet().BeginBulk(t.Context(), "late", model.Bulk{Action: model.BulkCancel, Reason: reason})))
		}
		found, _, err := b.Fleet().ReadBulk(t.Context(), "late")
		stopIf(t, err != nil || found.Reason != "second" || found.Cancelled, "found %+v, %v", found, err)
	})
}

// TestWhatIsForgottenLateOfABrokenModelIsNotWhatWasSavedSince lets a dispatcher forget a uid, and free its slot, after somebody has removed what its key
// held, saved the model and started it.
func TestWhatIsForgottenLateOfABrokenModelIsNotWhatWasSavedSince(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{":model:m1": "a text", ":due": scores{"m1": six}, ":limit:host=h": scores{"m1": six}})
		l := withLateness(b)
		l.keep(t, func() error { return b.Forget(t.Context(), "m1", "") })
		l.keep(t, func() error { return b.forget(t.Context(), "m1", b.Keys.Limit("host=h")) })
		must(t, b.redis.Del(t.Context(), b.Keys.Model("m1")).Err())
		b.mustApply(b.put("m1", "{}"))
		b.unchanged(func() { l.deliver(t) })
	})
}
