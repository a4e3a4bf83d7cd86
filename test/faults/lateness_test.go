package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"github.com/redis/go-redis/v9"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/admin/doctor"
	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/schedule"
	"github.com/refreshd/refreshd/worker"
)

// mostLate is how much later a request arrives at most. With the long tests some senders give up before.
var mostLate = long.Or(300*time.Millisecond, 3*time.Second)

// gusts let some requests arrive late, also when their sender has hung up meanwhile, until the context ends.
func gusts(ctx context.Context, l *link) error {
	defer l.change(weather{})
	for ctx.Err() == nil {
		for _, w := range []weather{{jitter: mostLate, slowClose: mostLate + time.Second}, {}} {
			l.change(w)
			rest(ctx, time.Duration(20+rand.IntN(150))*time.Millisecond)
		}
	}
	return nil
}

// lateVerb is an operator's command, its inverse, and whether it is done in a part.
type lateVerb struct {
	name     string
	do, undo func(context.Context) error
	done     func(*store.Store) (bool, error)
}

// only is the error of a verb that also says whether it changed something.
func only(_ bool, err error) error { return err }

// lateVerbs are all verbs about a queue that change what operators set, but for that which stops a queue under load.
func (d *drill) lateVerbs(q *store.Queue) []lateVerb {
	d.t.Helper()
	has := func(key func(*store.Keys) string, field string) func(*store.Store) (bool, error) {
		return func(part *store.Store) (bool, error) {
			return d.clients.Read.HExists(d.ctx, key(&part.Keys), field).Result()
		}
	}
	hold := &model.Hold{ID: "h2", Since: d.now(), Reason: "late", Selector: selectorOf(d.t, "uid=nobody")}
	closed, err := schedule.ParseCalendar(map[string]any{"name": "c1", "rrule": "FREQ=DAILY", "dtstart": "2026-01-01", "for": "1h"})
	d.check("read a calendar", err)
	spare := d.policy
	spare.Name = "spare"
	circuit := func(on bool) func(context.Context) error {
		return func(ctx context.Context) error {
			return flow.OfQueue(q).SetQueueCircuit(ctx, model.QueueCircuit{On: on, Share: 1, Window: time.Minute, Min: 1_000_000}, "ann")
		}
	}
	bulk := func(reason string) func(context.Context) error {
		return func(ctx context.Context) error {
			if _, err := flow.OfQueue(q).CancelBulk(ctx, "late"); err != nil {
				return err
			}
			return flow.OfQueue(q).BeginBulk(ctx, "late", model.Bulk{Action: model.BulkCancel, Selector: hold.Selector, Reason: reason})
		}
	}
	verbs := []lateVerb{
		{"hold", func(ctx context.Context) error { return flow.OfQueue(q).PutHold(ctx, hold) }, func(ctx context.Context) error {
			return only(flow.OfQueue(q).ReleaseHold(ctx, "h2", 0))
		}, func(part *store.Store) (bool, error) {
			h, err := holdOf(d.ctx, part, "h2")
			return h != nil && h.Until.IsZero(), err
		}},
		{
			"limit", func(ctx context.Context) error {
				return flow.OfQueue(q).PutLimit(ctx, &model.Limit{Name: "host=h", Running: 1})
			},
			func(ctx context.Context) error { return only(flow.OfQueue(q).RemoveLimit(ctx, "host=h")) },
			has(func(k *store.Keys) string { return k.Limits }, "host=h"),
		},
		{
			"calendar", func(ctx context.Context) error { return flow.OfQueue(q).PutCalendar(ctx, closed) },
			func(ctx context.Context) error { return only(flow.OfQueue(q).RemoveCalendar(ctx, "c1")) },
			has(func(k *store.Keys) string { return k.Calendars }, "c1"),
		},
		{
			"policy", func(ctx context.Context) error { return q.Fleet().PutPolicy(ctx, spare) },
			func(ctx context.Context) error { return only(q.Fleet().RemovePolicy(ctx, "spare")) },
			has(func(k *store.Keys) string { return k.Policies }, "spare"),
		},
		{
			"circuit", func(ctx context.Context) error {
				return only(flow.OfQueue(q).OpenCircuit(ctx, "host=h", "ann", "", time.Hour))
			},
			func(ctx context.Context) error { return only(flow.OfQueue(q).CloseCircuit(ctx, "host=h", "ann")) },
			has(func(k *store.Keys) string { return k.Circuit("host=h") }, "opened_at"),
		},
		{"circuit of the queue", circuit(true), circuit(false), func(part *store.Store) (bool, error) {
			status, err := flow.Of(part).QueueCircuit(d.ctx)
			return status.On, err
		}},
		{"bulk", bulk("done"), bulk("undone"), func(part *store.Store) (bool, error) {
			b, _, err := flow.Of(part).ReadBulk(d.ctx, "late")
			if b.Cancelled {
				err = errors.New("the bulk that was begun last was cancelled")
			}
			return b.Reason == "done", err
		}},
		{
			"settings", func(ctx context.Context) error { return q.SetNewErrorAbove(ctx, 9) },
			func(ctx context.Context) error { return q.SetNewErrorAbove(ctx, 5) },
			func(*store.Store) (bool, error) {
				stored, err := store.Open(d.ctx, d.clients, store.Config{Queue: q.Name})
				return err == nil && stored.NewErrorAbove() == 9, err
			},
		},
	}
	if len(q.Parts) > 1 { // nothing runs there
		verbs = append(verbs, lateVerb{
			"circuit of the queue by hand", func(ctx context.Context) error {
				return only(flow.OfQueue(q).OpenCircuit(ctx, "queue", "ann", "", time.Hour))
			},
			func(ctx context.Context) error { return only(flow.OfQueue(q).CloseCircuit(ctx, "queue", "ann")) },
			has(func(k *store.Keys) string { return k.QueueCircuit }, "opened_at"),
		})
	}
	return verbs
}

// holdOf reads one hold; nil: there is none.
func holdOf(ctx context.Context, part *store.Store, id string) (*model.Hold, error) {
	holds, problem, err := flow.Of(part).Holds(ctx)
	at := slices.IndexFunc(holds, func(h model.Hold) bool { return h.ID == id })
	if at < 0 {
		return nil, cmp.Or(problem, err)
	}
	return &holds[at], cmp.Or(problem, err)
}

func selectorOf(t testing.TB, text string) model.Selector {
	t.Helper()
	selector, err := model.ParseSelector(text)
	must(t, err)
	return selector
}

// insist does something until it is answered. Nobody waits for longer than a second.
func (d *drill) insist(what string, do func(context.Context) error) {
	d.t.Helper()
	d.until(what, func() (bool, error) {
		ctx, cancel := context.WithTimeout(d.ctx, time.Second)
		defer cancel()
		err := do(ctx)
		if err != nil {
			d.struck++
		}
		return err == nil, err
	})
}

// lateQueue is a queue that operators steer by requests that arrive late.
type lateQueue struct {
	*store.Queue // as it is
	verbs        []lateVerb
}

// lateQueues are the queue of the drill, and one of several parts whose pollers carry out commands.
func (d *drill) lateQueues() (queues []lateQueue) {
	d.t.Helper()
	operator, _ := d.connect(d.address)
	const spread = "spread"
	d.check("create a queue", store.Create(d.ctx, d.clients, store.Config{Queue: spread}, 2))
	for _, name := range []string{d.store.Keys.Queue, spread} {
		is, err := store.Open(d.ctx, d.clients, store.Config{Queue: name})
		d.check("open a queue", err)
		late, err := store.Open(d.ctx, operator, store.Config{Queue: name})
		d.check("open a queue", err)
		queues = append(queues, lateQueue{is, d.lateVerbs(late)})
		for i := range late.Parts {
			if name == spread {
				clients, _ := d.connect(d.address)
				q, err := store.Open(d.ctx, clients, store.Config{Queue: name})
				d.check("open a queue", err)
				daemon, err := poller.New(poller.RoomsOf(q.Parts[i]), poller.Config{})
				d.check("open a poller", err)
				d.workers.run(daemon.Run)
			}
		}
	}
	return queues
}

// pushLate pushes commands about the queue, and returns how many replies there are to be, and the reason of the hold that is asked for last.
func (d *drill) pushLate(q lateQueue, round int) (replies int64, last string) {
	d.t.Helper()
	keys, last := q.Parts[0].Keys, fmt.Sprint("second ", round)
	for i, text := range []string{fmt.Sprint(`{"type":"hold","id":"h1","selector":"uid=nobody","reason":"first `, round), `{"type":"release","id":"h1`, `{"type":"hold","id":"h1","selector":"uid=nobody","reason":"` + last} {
		command := fmt.Sprintf(`%s","command_id":"c%d-%d","reply_to":%q}`, text, round, i, keys.Reply("late"))
		d.check("push a command", d.clients.Write.RPush(d.ctx, keys.Control, command).Err())
	}
	return int64(3 * (round + 1)), last
}

// steerLate lets all verbs be done and undone, again and again, and at the end done or not.
func (d *drill) steerLate(q lateQueue, done bool) {
	d.t.Helper()
	for range long.Or(1, 2) {
		for _, v := range q.verbs {
			d.insist(v.name, v.do)
			d.insist("undo "+v.name, v.undo)
			if done {
				d.insist(v.name+" again", v.do)
			}
		}
	}
}

// expectLate wants all verbs done or not, and the hold that was asked for last, in each part.
func (d *drill) expectLate(q lateQueue, done bool, reason string) {
	d.t.Helper()
	for _, part := range q.Parts {
		for _, v := range q.verbs {
			is, err := v.done(part)
			stopIf(d.t, err != nil || is != done, "%s: %s: want it done: %t, found %t, %v", part.Keys.Queue, v.name, done, is, err)
		}
		hold, err := holdOf(d.ctx, part, "h1")
		stopIf(d.t, err != nil || hold == nil || hold.Reason != reason || !hold.Until.IsZero(),
			"%s: want the hold that was asked for last, %q, found %+v, %v", part.Keys.Queue, reason, hold, err)
	}
}

// TestWhatArrivesAfterItsSenderGaveUpUndoesNothing lets requests of all daemons, of commands about the queue and of operators arrive late.
func TestWhatArrivesAfterItsSenderGaveUpUndoesNothing(t *testing.T) {
	d, l := behind(t)
	d.begin()
	queues, given := d.lateQueues(), 0
	for round := range long.Or(1, 2) * *timesFlag {
		wind := newDaemonGroup(d.ctx, t)
		wind.run(func(ctx context.Context) error { return gusts(ctx, l) })
		done, reasons := round%2 == 0, make([]string, len(queues))
		for i, q := range queues {
			var replies int64
			replies, reasons[i] = d.pushLate(q, round)
			d.steerLate(q, done)
			d.until("the replies", func() (bool, error) {
				found, err := d.clients.Read.LLen(d.ctx, q.Parts[0].Keys.Reply("late")).Result()
				return found >= replies, err
			})
			given += long.Or(1, 2) * len(q.verbs)
		}
		wind.stop()
		d.until("all that is on its way", func() (bool, error) { return l.flying.Load() == 0, nil })
		for i, q := range queues {
			d.expectLate(q, done, reasons[i])
		}
	}
	for _, q := range queues {
		for _, v := range q.verbs {
			d.insist("undo "+v.name, v.undo)
		}
		report, err := doctor.Check(d.ctx, q.Queue, doctor.Options{})
		failIf(t, err != nil || report.Total(doctor.Error) > 0, "%s: want no broken invariant, got %+v, %v", q.Name, report.Findings, err)
	}
	d.settle()
	d.audit()
	failIf(t, long.Enabled() && d.struck == 0, "want requests of which the sender gives up, found none")
	t.Logf("%d verbs were done and undone, and %d requests of operators were given up", given, d.struck)
}

// outwait waits until an attempt is over, whatever it ends by.
func (d *drill) outwait(e entry) {
	_ = d.await(func() (bool, error) {
		uid, err := d.clients.Read.HGet(d.ctx, d.store.Keys.Model(e.UID), "attempt_uid").Result()
		if errors.Is(err, redis.Nil) {
			err = nil
		}
		return uid != e.AttemptUID, err
	})
}

func TestAWorkerThatIgnoresItsDeadlineChangesNothingWhenItAnswers(t *testing.T) {
	long.Only(t)
	d, _ := on(t)
	d.policy.Timeout = 500 * time.Millisecond
	var late atomic.Int64
	lateWorkers := newDaemonGroup(d.ctx, t)
	t.Cleanup(lateWorkers.stop)
	y := d.conclude(func() {
		for range 3 {
			lateWorkers.run(d.foreignWorker(func(e entry) { d.outwait(e); late.Add(1) }))
		}
		d.until("late answers", func() (bool, error) { return late.Load() >= 10*int64(*timesFlag), nil })
		lateWorkers.stop()
	})
	unheard := y.stats["stale"] + y.stats["duplicate"] + y.stats["late_answer"]
	failIf(t, unheard < late.Load(), "want %d late answers stale, got %d", late.Load(), unheard)
	timeouts := int64(y.events["timeout"])
	failIf(t, timeouts < late.Load(), "want %d attempts timed out, got %d", late.Load(), timeouts)
	t.Logf("%d answers came after the deadline", late.Load())
}

// die leaves what a poller and a worker pool leave that are killed now: claimed messages, and taken attempts if there are any.
func (d *drill) die(name string) {
	d.t.Helper()
	d.check("push a message", d.clients.Write.RPush(d.ctx, d.store.Keys.Output, "left by "+name).Err())
	d.record.pushed(nil, 1)
	_, err := d.store.Claim(d.ctx, name, store.Holding{}, 100, time.Second)
	d.check("claim as "+name, err)
	_, err = d.store.Pool().Take(d.ctx, store.TakeRequest{Owner: name, New: true, Most: 100})
	d.check("take as "+name, err)
}

// forgotten waits until others have all that was left under a name.
func (d *drill) forgotten(name string) {
	d.t.Helper()
	keys := d.store.Keys
	d.until("the end of "+name, func() (bool, error) {
		for _, heartbeats := range []string{keys.Pollers, keys.Workers} {
			owners, err := d.clients.Read.ZRange(d.ctx, heartbeats, 0, -1).Result()
			if err != nil || slices.Contains(owners, name) {
				return false, cmp.Or(err, fmt.Errorf("%s stands in %s", name, heartbeats))
			}
		}
		left, err := d.clients.Read.Exists(d.ctx, keys.Claimed(name), keys.Taken(name)).Result()
		return left == 0, err
	})
}

// TestAClockThatJumpsForthAndBackLosesNothing lets somebody die at each jump, beside daemons and workers of our own with short leases. The clock ends
// where it has been latest: the queue waits for the times that it was given.
func TestAClockThatJumpsForthAndBackLosesNothing(t *testing.T) {
	long.Only(t)
	d, _ := on(t)
	var offset atomic.Int64
	d.clock = func() time.Time { return time.Now().Add(time.Duration(offset.Load())).UTC().Truncate(time.Millisecond) }
	d.clients, d.store = d.connect(d.address)
	d.save()
	for range 2 {
		d.dispatch()
		d.poll(poller.Config{Lease: time.Second, Tick: 100 * time.Millisecond})
		d.pool(worker.Config{Lease: time.Second})
	}
	d.refreshAll()
	const m, h = time.Minute, time.Hour
	for i, by := range []time.Duration{-m, m, -h, h, m, -m, m, h, -h, h} {
		name := fmt.Sprint("dead-", i)
		d.die(name)
		before, _ := d.store.Now(d.ctx)
		offset.Add(int64(by))
		if after, err := d.store.Now(d.ctx); err != nil || after.Sub(before) > by/2 != (by > 0) {
			t.Errorf("the fault did not strike: want a jump by %s, got one from %s to %s (%v)", by, before, after, err)
		}
		d.forgotten(name)
		d.examine()
	}
	d.settle()
	d.audit()
}
