package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/schedule"
	"github.com/refreshd/refreshd/scripts"
)

// gusts let some of what is sent arrive up to three seconds late, also when its sender has hung up meanwhile, until the context ends.
func gusts(ctx context.Context, l *link) error {
	defer l.change(weather{})
	for ctx.Err() == nil {
		for _, w := range []weather{{jitter: 3 * time.Second, slowClose: 4 * time.Second}, {}} {
			l.change(w)
			timer := time.NewTimer(time.Duration(20+rand.IntN(150)) * time.Millisecond)
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
		}
	}
	return nil
}

// lateVerb is what an operator does, what undoes it, and whether it is done.
type lateVerb struct {
	name     string
	do, undo func(context.Context, *scripts.Store) error
	done     func() (bool, error)
}

func (d *drill) lateVerbs() []lateVerb {
	keys := d.store.Keys
	has := func(key, field string) func() (bool, error) {
		return func() (bool, error) { return d.clients.Read.HExists(d.ctx, key, field).Result() }
	}
	hold := &model.Hold{ID: "h2", Since: d.now(), Reason: "late", Selector: selectorOf(d.t, "uid=nobody")}
	closed, err := schedule.ParseCalendar(map[string]any{"name": "c1", "rrule": "FREQ=DAILY", "dtstart": "2026-01-01", "for": "1h"})
	d.check("read a calendar", err)
	spare := d.policy
	spare.Name = "spare"
	return []lateVerb{
		{"hold", func(ctx context.Context, s *scripts.Store) error { return s.PutHold(ctx, hold) }, func(ctx context.Context, s *scripts.Store) error {
			_, err := s.ReleaseHold(ctx, "h2", 0, hold.Since.Add(time.Second))
			return err
		}, func() (bool, error) {
			holds, problem, err := d.store.Holds(d.ctx)
			for _, h := range holds {
				if h.ID == "h2" && h.Until.IsZero() {
					return true, err
				}
			}
			return false, joined(problem, err)
		}},
		{"limit", func(ctx context.Context, s *scripts.Store) error {
			return s.PutLimit(ctx, &model.Limit{Name: "host=h", Running: 1}, hold.Since)
		}, func(ctx context.Context, s *scripts.Store) error {
			_, err := s.RemoveLimit(ctx, "host=h", hold.Since)
			return err
		}, has(keys.Limits(), "host=h")},
		{"calendar", func(ctx context.Context, s *scripts.Store) error { return s.PutCalendar(ctx, closed, hold.Since) }, func(ctx context.Context, s *scripts.Store) error {
			_, err := s.RemoveCalendar(ctx, "c1", hold.Since)
			return err
		}, has(keys.Calendars(), "c1")},
		{"policy", func(ctx context.Context, s *scripts.Store) error { return s.PutPolicy(ctx, spare) }, func(ctx context.Context, s *scripts.Store) error {
			_, err := s.RemovePolicy(ctx, "spare")
			return err
		}, has(keys.Policies(), "spare")},
		{"circuit", func(ctx context.Context, s *scripts.Store) error {
			_, err := s.OpenCircuit(ctx, "host=h", "ann", "", d.now().Add(time.Hour), d.now())
			return err
		}, func(ctx context.Context, s *scripts.Store) error {
			_, err := s.CloseCircuit(ctx, "host=h", "ann", d.now())
			return err
		}, has(keys.Circuit("host=h"), "opened_at")},
	}
}

func joined(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func selectorOf(t testing.TB, text string) model.Selector {
	t.Helper()
	selector, err := model.ParseSelector(text)
	if err != nil {
		t.Fatal(err)
	}
	return selector
}

// insist does something until it is answered. Nobody waits for longer than a second.
func (d *drill) insist(what string, store *scripts.Store, do func(context.Context, *scripts.Store) error) {
	d.t.Helper()
	d.until(what, func() (bool, error) {
		ctx, cancel := context.WithTimeout(d.ctx, time.Second)
		defer cancel()
		err := do(ctx, store)
		if err != nil {
			d.struck++
		}
		return err == nil, err
	})
}

// TestWhatArrivesAfterItsSenderGaveUpUndoesNothing lets requests of all daemons, of commands about the queue and of operators arrive late.
func TestWhatArrivesAfterItsSenderGaveUpUndoesNothing(t *testing.T) {
	d, l := behind(t)
	d.begin()
	_, operator := d.connect(d.address)
	verbs := d.lateVerbs()
	for round := range long.Or(1, 15) * *timesFlag {
		wind := newDaemonGroup(d.ctx, t)
		wind.run(func(ctx context.Context) error { return gusts(ctx, l) })
		reply, reasons := d.store.Keys.Reply("late"), []string{fmt.Sprint("first ", round), fmt.Sprint("second ", round)}
		for i, text := range []string{`{"type":"hold","id":"h1","selector":"uid=nobody","reason":"` + reasons[0], `{"type":"release","id":"h1`, `{"type":"hold","id":"h1","selector":"uid=nobody","reason":"` + reasons[1]} {
			command := fmt.Sprintf(`%s","command_id":"c%d-%d","reply_to":%q}`, text, round, i, reply)
			d.check("push a command", d.clients.Write.RPush(d.ctx, d.store.Keys.Control(), command).Err())
		}
		for i := range 3 * len(verbs) {
			v := verbs[i%len(verbs)]
			d.insist(v.name, operator, v.do)
			d.insist("undo "+v.name, operator, v.undo)
			if round%2 == 0 {
				d.insist(v.name+" again", operator, v.do)
			}
		}
		d.until("the replies", func() (bool, error) {
			replies, err := d.clients.Read.LLen(d.ctx, reply).Result()
			return replies >= int64(3*(round+1)), err
		})
		wind.stop()
		d.until("all that is on its way", func() (bool, error) { return l.flying.Load() == 0, nil })
		for _, v := range verbs {
			if done, err := v.done(); err != nil || done != (round%2 == 0) {
				t.Fatalf("round %d: %s: want it done: %t, found %t, %v", round, v.name, round%2 == 0, done, err)
			}
		}
		holds, problem, err := d.store.Holds(d.ctx)
		d.check("read the holds", joined(problem, err))
		for _, h := range holds {
			if h.ID == "h1" && (h.Reason != reasons[1] || !h.Until.IsZero()) {
				t.Fatalf("round %d: want the hold that was asked for last, found %+v", round, h)
			}
		}
	}
	for _, v := range verbs {
		d.insist("undo "+v.name, operator, v.undo)
	}
	d.settle()
	d.conclude()
	t.Logf("%d requests of operators were given up", d.struck)
}
