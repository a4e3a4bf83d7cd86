package simulation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/model"
)

// patience is how many rounds of everybody a queue may need to come to rest.
const patience = 400

// handedOver is within what time of rounds others have what the dead had claimed or taken, whatever the clock did before. A pool waits
// for a lease in which the clock runs evenly, and a heartbeat of another may lie as much as a lease ahead.
const handedOver = 3 * lease

// turnOf is how long dispatchers leave due models to one before them.
const turnOf = 25 * time.Millisecond

// settle ends all faults and lets everybody work until there is nothing left to do.
func (w *world) settle() {
	w.note("calm")
	w.calm, w.temper.mishaps, w.temper.freezes, w.temper.deaf, w.temper.faults = true, 0, 0, 0, calmTemper.faults
	w.operator.spare, w.storms, w.delayed = 0, 0, nil
	w.server.write.ScriptFlush(context.Background())
	w.letGo()
	if w.rng.IntN(2) > 0 { // in the other half workers end what they began
		w.outlive()
	}
	scenes := w.scenes()
	left := time.Duration(0) // for how long something was left with the dead
	for range patience {
		writes := w.writes
		w.rounds()
		w.letGo()
		at, waiting := w.next()
		if !waiting {
			w.turn(2 * time.Second) // the circuit of the queue is measured once more
			w.rounds()
			if _, waiting = w.next(); waiting { // what became due meanwhile was parked
				continue
			}
			w.oracle.checkQuiet(w.before)
			if len(scenes) == 0 {
				w.growOld()
				return
			}
			scenes[0]()
			scenes = scenes[1:]
			continue
		}
		if w.writes != writes || len(w.before.claimed)+len(w.before.taken) == 0 {
			left = 0
		}
		failIf(left > handedOver, "for %s nobody takes over: claimed %v, taken %v, heartbeats %v and %v at %s",
			left, w.before.claimed, w.before.taken, w.before.pollers, w.before.workers, w.now)
		by := at.Sub(w.now)
		if by <= 0 && w.writes != writes {
			by = turnOf // it is for a dispatcher that has died
		} else if by <= 0 {
			by = time.Second // a message has to be heard before, or workers could not speak
		}
		left += by
		w.turn(by)
	}
	err := flawOf(func() { w.oracle.checkQuiet(w.before) })
	fail("the queue does not come to rest: %w, due %v, urgent %v, running %v", err, w.before.due, w.before.urgent, w.before.running)
}

// outlive passes every deadline while no worker works, and all that workers have said is heard: no attempt outlives its deadline by more than some
// rounds of dispatchers.
func (w *world) outlive() {
	w.listenToAll()
	latest := w.now
	for _, deadline := range w.before.running {
		if at := time.UnixMilli(int64(deadline)).UTC(); at.After(latest) {
			latest = at
		}
	}
	w.turn(latest.Sub(w.now) + 10*turnOf) // those before them may have died a moment ago
	passed := w.before
	for range 3 { // a round that was under way when the deadline passed, one that mends scores, and one that ends the attempts
		w.dispatch()
	}
	for outage := time.Duration(0); w.temper.away && outage <= grace; outage += gap / 2 {
		w.turn(gap / 2)
		w.dispatch()
	}
	for uid, hash := range passed.models {
		attempt := hash["attempt_uid"]
		failIf(attempt != "" && w.before.models[uid]["attempt_uid"] == attempt && !instant(w.before.models[uid]["deadline_at"]).After(w.now),
			"attempt %s of %s has outlived its deadline: %v", attempt, uid, w.before.models[uid])
	}
}

// listenToAll lets pollers apply all that workers have said, also what the dead had claimed, and forget these.
func (w *world) listenToAll() {
	polls := func(a *actor) bool { _, pool := a.role.(*poolRole); return ownerOf(a) != "" && !pool }
	dead := func(owner string) bool { return !w.alive(owner) }
	for left, heard := time.Duration(0), false; !heard; left += lease / 4 {
		failIf(left > handedOver, "for %s nobody hears of %v, %v and %v", left, w.before.output, w.before.claimed, w.before.pollers)
		heard = len(w.before.output)+len(w.before.claimed) == 0 && !slices.ContainsFunc(slices.Collect(maps.Keys(w.before.pollers)), dead)
		for rounds, writes := 0, 0; rounds < 2 || writes != w.writes; rounds++ { // the first may end one that was under way
			writes = w.writes
			w.goOn(polls)
		}
		w.turn(lease / 4)
	}
}

func (w *world) dispatch() {
	w.goOn(func(a *actor) bool { _, dispatches := a.role.(dispatcherRole); return dispatches })
}

// goOn lets some do a whole round each.
func (w *world) goOn(who func(*actor) bool) {
	for _, a := range slices.Clone(w.actors) {
		if who(a) {
			w.finish(a)
		}
	}
}

// rounds lets everybody do whole rounds until a round of all changes nothing.
func (w *world) rounds() {
	for range patience {
		writes := w.writes
		for _, a := range slices.Clone(w.actors) {
			w.finish(a)
		}
		if w.writes == writes {
			return
		}
	}
	fail("everybody is busy for ever: due %v, urgent %v, running %v, claimed %v", w.before.due, w.before.urgent, w.before.running, w.before.claimed)
}

// finish lets an actor end its round, if it is in one, and do another.
func (w *world) finish(a *actor) {
	for begun := false; !begun || a.at != nil; begun = true {
		if begun || a.at != nil {
			w.note("%s at %s", a.name, a.at)
		}
		w.steps++
		w.resume(a, answered)
		if w.broken != nil || a.ended {
			w.bury(a) // it was about to resign
			return
		}
	}
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
		soonest(float64(w.now.Add(lease / 4).UnixMilli())) // dispatchers look for expired pools when the clock runs evenly
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
	for blocker := range s.parkedBy {
		if look := max(s.blockers[blocker], float64(w.now.UnixMilli())); look < float64(model.Never.UnixMilli()) {
			soonest(look)
		}
	}
	return at, waiting || len(s.input) > 0
}

// scenes are played when all is quiet: chance brings them about too seldom. Daemons and workers play as ever; all comes to rest after each.
func (w *world) scenes() (all []func()) {
	if w.temper.moves {
		all = append(all, w.moveHouse)
	}
	if w.temper.few {
		all = append(all, w.fallIll)
	}
	if w.temper.doubts {
		all = append(all, w.beUsual, w.beDoubted)
	}
	if w.temper.away {
		all = append(all, w.beAway, w.beBereaved)
	}
	if w.temper.lines {
		all = append(all, w.beInLine)
	}
	return all
}

// errand is the operator's work in one round.
type errand func(ctx context.Context) error

// order is an errand: to carry out a command.
func (o *operatorRole) order(format, uid string) errand {
	return func(ctx context.Context) error { return o.carryOut(ctx, fmt.Sprintf(format, uid)) }
}

// send lets the operator do errands, one after the other.
func (w *world) send(errands ...errand) {
	o := w.operator
	o.errands = errands
	at := slices.IndexFunc(w.actors, func(a *actor) bool { return a.role == o })
	for len(o.errands) > 0 && w.broken == nil {
		w.finish(w.actors[at])
	}
	w.judge()
}

// moveHouse exports each model, takes it away or disables it, and imports it again.
func (w *world) moveHouse() {
	o, changes := w.operator, []string{`{"type":"remove","uid":%q}`, `{"type":"disable","uid":%q}`}
	for i, uid := range w.uids {
		w.send(
			func(ctx context.Context) error { return o.pack(ctx, uid) },
			o.order(changes[i%2], uid),
			func(ctx context.Context) error {
				if at := len(o.packed) - 1; at >= 0 && o.packed[at].moved.UID == uid {
					return o.bring(ctx, o.packed[at])
				}
				return nil // there was no such model
			})
	}
}

// fallIll lets the workers fail all models once, each by its own fingerprint, and takes some away.
func (w *world) fallIll() {
	const put, remove = `{"type":"put","uid":%q,"policy":{"timeout":"1m","retries":["20m","next"]},"refresh":"now"}`, `{"type":"remove","uid":%q}`
	w.ill = true
	var fall, leave []errand
	for i, uid := range w.uids {
		if fall = append(fall, w.operator.order(put, uid)); i%2 == 0 {
			leave = append(leave, w.operator.order(remove, uid))
		}
	}
	w.send(fall...)
	w.rounds()
	w.ill = false
	w.send(leave...)
}

// growOld is the last scene: models become older than anybody promised, while dispatchers alone work. What is disabled or held grows old too.
func (w *world) growOld() {
	if !w.temper.ages {
		return
	}
	const put, disable = `{"type":"put","uid":%q,"rrule":"FREQ=MINUTELY;INTERVAL=2","dtstart":"2026-01-01","policy":{"fresh_within":"3m","warn_within":"1m"}}`, `{"type":"disable","uid":%q}`
	w.send(w.operator.order(put, "m1"), w.operator.order(disable, "m1"), w.operator.order(put, "m2"))
	if w.temper.steers {
		must(flow.Of(w.server.store).PutHold(context.Background(), &model.Hold{ID: lastHold, Since: w.now}))
		w.enter(&deed{now: w.now})
	}
	for _, by := range []time.Duration{time.Minute, 3 * time.Minute} {
		w.judge()
		w.turn(by)
		for range 5 { // a page each
			w.dispatch()
		}
		w.oracle.checkAged(w.before, w.now)
	}
}
