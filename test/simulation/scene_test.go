package simulation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/refreshd/refreshd/model"
)

// scenes are what is played when all is quiet: what chance brings about too seldom. Daemons and workers play as ever; all comes to rest after each.
func (w *world) scenes() (all []func() error) {
	if w.temper.moves {
		all = append(all, w.moveHouse)
	}
	if w.temper.few {
		all = append(all, w.fallIll)
	}
	return all
}

// errand is what the operator does in one round.
type errand func(ctx context.Context) error

// order is an errand: to carry out a command.
func (o *operatorRole) order(format, uid string) errand {
	return func(ctx context.Context) error { return o.carryOut(ctx, fmt.Sprintf(format, uid)) }
}

// send lets the operator do errands, one after the other.
func (w *world) send(errands ...errand) error {
	o := w.operator
	o.errands = errands
	at := slices.IndexFunc(w.actors, func(a *actor) bool { return a.role == o })
	for len(o.errands) > 0 && w.broken == nil {
		if err := w.finish(w.actors[at]); err != nil {
			return err
		}
	}
	return w.broken
}

// moveHouse exports each model, takes it away or disables it, and imports it again.
func (w *world) moveHouse() error {
	o, changes := w.operator, []string{`{"type":"remove","uid":%q}`, `{"type":"disable","uid":%q}`}
	for i, uid := range w.uids {
		err := w.send(
			func(ctx context.Context) error { return o.pack(ctx, uid) },
			o.order(changes[i%2], uid),
			func(ctx context.Context) error {
				if at := len(*o.packed) - 1; at >= 0 && (*o.packed)[at].moved.UID == uid {
					return o.bring(ctx, (*o.packed)[at])
				}
				return nil // there was no such model
			})
		if err != nil {
			return err
		}
	}
	return nil
}

// fallIll lets the workers fail all models once, each by a cause of its own, and takes some away.
func (w *world) fallIll() error {
	const put, remove = `{"type":"put","uid":%q,"policy":{"timeout":"1m","retries":["20m","next"]},"refresh":"now"}`, `{"type":"remove","uid":%q}`
	w.ill = true
	var fall, leave []errand
	for i, uid := range w.uids {
		if fall = append(fall, w.operator.order(put, uid)); i%2 == 0 {
			leave = append(leave, w.operator.order(remove, uid))
		}
	}
	err := w.send(fall...)
	if err == nil {
		err = w.rounds()
	}
	if w.ill = false; err == nil {
		err = w.send(leave...)
	}
	return err
}

// growOld is the last scene: models become older than anybody promised, while dispatchers alone work. What is disabled or held grows old too.
func (w *world) growOld() error {
	if !w.temper.ages {
		return nil
	}
	const put, disable = `{"type":"put","uid":%q,"rrule":"FREQ=MINUTELY;INTERVAL=2","dtstart":"2026-01-01","policy":{"fresh_within":"3m","warn_within":"1m"}}`, `{"type":"disable","uid":%q}`
	err := w.send(w.operator.order(put, "m1"), w.operator.order(disable, "m1"), w.operator.order(put, "m2"))
	if err == nil && w.temper.steers {
		err = w.server.store.Fleet().PutHold(context.Background(), &model.Hold{ID: lastHold, Since: w.now})
		w.enter(&deed{now: w.now})
	}
	for _, by := range []time.Duration{time.Minute, 3 * time.Minute} {
		if err := cmp.Or(err, w.broken); err != nil {
			return err
		}
		w.turn(by)
		for range 5 { // a page each
			if err := w.dispatch(); err != nil {
				return err
			}
		}
		err = w.oracle.checkAged(w.before, w.now)
	}
	return err
}
