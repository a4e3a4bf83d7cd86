package simulation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/refreshd/refreshd/model"
)

// patience is how many rounds of everybody a queue may need to come to rest.
const patience = 400

// handedOver is within what time of rounds others have what the dead had claimed or taken, whatever the clock did before. A pool waits
// for a lease in which the clock runs evenly, and a heartbeat of another may lie as much as a lease ahead.
const handedOver = 3 * lease

// turnOf is how long dispatchers leave what is due to one before them.
const turnOf = 25 * time.Millisecond

// settle ends all faults and lets everybody work until there is nothing left to do.
func (w *world) settle() error {
	w.note("calm")
	w.calm, w.temper.mishaps, w.temper.freezes, w.temper.deaf, w.temper.faults = true, 0, 0, 0, calmTemper.faults
	w.operator.spare, w.storms, w.delayed = 0, 0, nil
	w.server.write.ScriptFlush(context.Background())
	if err := w.letGo(); err != nil {
		return err
	}
	if err := w.outlive(); err != nil {
		return err
	}
	scenes := w.scenes()
	left := time.Duration(0) // for how long something was left with the dead
	for range patience {
		writes := w.writes
		if err := w.rounds(); err != nil {
			return err
		}
		if err := w.letGo(); err != nil { // also what somebody was about to begin
			return err
		}
		at, waiting := w.next()
		if !waiting {
			w.turn(2 * time.Second) // the circuit of the queue is measured once more
			if err := w.rounds(); err != nil {
				return err
			}
			if _, waiting = w.next(); waiting { // what became due meanwhile was parked
				continue
			}
			if err := w.oracle.checkQuiet(w.before); err != nil {
				return err
			}
			if len(scenes) == 0 {
				return w.growOld()
			}
			if err := scenes[0](); err != nil {
				return err
			}
			scenes = scenes[1:]
			continue
		}
		if w.writes != writes || len(w.before.claimed)+len(w.before.taken) == 0 {
			left = 0
		}
		if left > handedOver {
			return fmt.Errorf("for %s nobody takes over: claimed %v, taken %v, heartbeats %v and %v at %s",
				left, w.before.claimed, w.before.taken, w.before.pollers, w.before.workers, w.now)
		}
		by := at.Sub(w.now)
		if by <= 0 {
			by = turnOf // it is for a dispatcher that has died
		}
		left += by
		w.turn(by)
	}
	err := w.oracle.checkQuiet(w.before)
	return fmt.Errorf("the queue does not come to rest: %w, due %v, urgent %v, running %v", err, w.before.due, w.before.urgent, w.before.running)
}

// outlive passes every deadline while no worker works: no attempt outlives its deadline by more than some rounds of dispatchers.
func (w *world) outlive() error {
	if w.rng.IntN(2) == 0 {
		return nil // in the other half workers end what they began
	}
	latest := w.now
	for _, deadline := range w.before.running {
		if at := time.UnixMilli(int64(deadline)).UTC(); at.After(latest) {
			latest = at
		}
	}
	w.turn(latest.Sub(w.now) + 10*turnOf) // those before them may have died a moment ago
	passed := w.before
	for range 3 { // a round that was under way when the deadline passed, one that mends scores, and one that ends the attempts
		if err := w.dispatch(); err != nil {
			return err
		}
	}
	for uid, hash := range passed.models {
		attempt := hash["attempt_uid"]
		if attempt != "" && w.before.models[uid]["attempt_uid"] == attempt && !instant(w.before.models[uid]["deadline_at"]).After(w.now) {
			return fmt.Errorf("attempt %s of %s has outlived its deadline: %v", attempt, uid, w.before.models[uid])
		}
	}
	return nil
}

// dispatch lets each dispatcher do a round.
func (w *world) dispatch() error {
	for _, a := range slices.Clone(w.actors) {
		if _, dispatches := a.role.(dispatcherRole); !dispatches {
			continue
		}
		if err := w.finish(a); err != nil {
			return err
		}
	}
	return nil
}

// rounds lets everybody do whole rounds until a round of all changes nothing.
func (w *world) rounds() error {
	for range patience {
		writes := w.writes
		for _, a := range slices.Clone(w.actors) {
			if err := w.finish(a); err != nil {
				return err
			}
		}
		if w.writes == writes {
			return nil
		}
	}
	return fmt.Errorf("everybody is busy for ever: due %v, urgent %v, running %v, claimed %v", w.before.due, w.before.urgent, w.before.running, w.before.claimed)
}

// finish lets an actor end its round, if it is in one, and do another.
func (w *world) finish(a *actor) error {
	for begun := false; !begun || a.at != nil; begun = true {
		if begun || a.at != nil {
			w.note("%s at %s", a.name, a.at)
		}
		w.steps++
		w.resume(a, answered)
		if w.broken != nil || a.ended {
			return w.bury(a) // it was about to resign
		}
	}
	return nil
}

// next is when something must happen that has not happened yet; false: never.
func (w *world) next() (at time.Time, waiting bool) {
	s := w.before
	if len(s.messages()) > 0 {
		at, waiting = w.now.Add(lease), true // of a poller that is no more
	}
	soonest := func(score float64) {
		if deadline := time.UnixMilli(int64(score)).UTC(); !waiting || deadline.Before(at) {
			at, waiting = deadline, true
		}
	}
	for _, deadline := range s.running {
		soonest(deadline)
	}
	if len(s.taken) > 0 {
		soonest(float64(w.now.Add(lease / 4).UnixMilli())) // pools look for expired ones when the clock runs evenly
	}
	for uid := range w.oracle.meddled {
		for _, set := range []map[string]float64{s.due, s.urgent} {
			if at, found := set[uid]; found {
				soonest(at) // a dispatcher looks when the score passes
			}
		}
	}
	for id := range s.openBulks {
		allowed := instant(s.bulks[id]["since"]) // what runs models waits for a clock that was set back, and for its rate
		if at := s.bulks[id]["next_at"]; s.bulks[id]["rate"] != "" && at != "" {
			allowed = instant(at)
		}
		soonest(float64(later(allowed, w.now.Add(time.Second)).UnixMilli()))
	}
	for gate := range s.parkedBy {
		if look := max(s.gates[gate], float64(w.now.UnixMilli())); look < float64(model.Never.UnixMilli()) {
			soonest(look)
		}
	}
	return at, waiting || len(s.input) > 0
}

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
				if at := len(o.packed) - 1; at >= 0 && o.packed[at].moved.UID == uid {
					return o.bring(ctx, o.packed[at])
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
