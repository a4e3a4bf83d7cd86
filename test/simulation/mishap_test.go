package simulation

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
)

// temper is how one run is disposed: each seed has a few faults that are frequent and many that it does not have at all,
// because what happens all the time hides what happens seldom.
type temper struct {
	faults       [fates]int // per mille of the calls
	mishaps      int        // per cent of the steps
	freezes      int        // per cent of the steps
	deaf         int        // per mille of the calls of worker pools: the reply is lost
	batch        int
	maxQueued    int
	jumps        []time.Duration
	queueCircuit map[string]string // its settings; nil: it is off
	rules        bool              // the operator changes the rule of a policy that several models share
	crowd        bool              // dispatchers do not share the work: all decide about the same
	hands        bool              // applications want many models at once, while others are due
	floors       bool              // workers ask for later, and models are saved meanwhile
	pools        bool              // worker pools do most of the steps, so that their heartbeats follow each other evenly
	steers       bool              // operators steer the fleet: holds, limits, calendars, bulks
	keyed        string            // the policy of most steered models, who share a key; empty: they have any
	deeds        deeds             // what operators who steer do mostly; empty: anything
	ages         bool              // policies promise that models do not grow old
	moves        bool              // operators export models and import them again
	timed        bool              // the next start of most models depends on several times
	silent       bool              // workers announce signs of life, and policies count on them
	doubts       bool              // guards doubt what succeeds
	away         bool              // there is a grace behind outages, and all dispatchers or all pollers are away for a while
	lines        bool              // models wait in line for places of keys
	few          bool              // few fingerprints are kept apart
	waits        bool              // workers rest now and then, and most know two lists only: attempts spend their deadlines in line
}

var calmTemper = temper{}

func newTemper(rng *rand.Rand, planted bug) temper {
	t := temper{batch: 2 + rng.IntN(6), maxQueued: 1 + rng.IntN(5), mishaps: 10 + rng.IntN(15)}
	for f := range t.faults {
		if rng.IntN(3) == 0 {
			t.faults[f] = 5 + rng.IntN(80)
		}
	}
	t.faults[answered] = 0
	if rng.IntN(3) == 0 {
		t.freezes = 1 + rng.IntN(3)
	}
	if rng.IntN(3) == 0 {
		t.deaf = 50 + rng.IntN(200)
	}
	t.jumps = []time.Duration{time.Millisecond, time.Second, 3 * time.Second}
	if rng.IntN(3) > 0 {
		t.jumps = append(t.jumps, 15*time.Second, time.Minute)
	}
	if rng.IntN(3) == 0 {
		t.jumps = append(t.jumps, 11*time.Minute, time.Hour, 26*time.Hour)
	}
	if rng.IntN(4) == 0 {
		t.jumps = append(t.jumps, -time.Second, -20*time.Second)
	}
	if rng.IntN(6) == 0 || planted.back {
		t.jumps = append(t.jumps, -time.Minute, -time.Hour)
	}
	if t.pools = rng.IntN(5) == 0 || planted.pools; t.pools {
		t.jumps = []time.Duration{time.Millisecond, time.Second, 2 * time.Second}
	}
	if rng.IntN(3) == 0 || planted.queueCircuit {
		t.queueCircuit = map[string]string{"on": "1", "share": []string{"0.5", "0.9"}[rng.IntN(2)], "window_ms": []string{"60000", "3600000"}[rng.IntN(2)], "min": strconv.Itoa(1 + rng.IntN(3))}
	}
	t.crowd = rng.IntN(2) == 0
	if t.hands = !t.pools && rng.IntN(6) == 0 || planted.hands; t.hands {
		t.batch, t.maxQueued, t.jumps = 2+6*rng.IntN(2), 2, append(t.jumps, 11*time.Minute)
	}
	t.floors = !t.hands && rng.IntN(5) == 0 || planted.floors
	if t.rules = !t.pools && rng.IntN(5) == 0 || planted.rules; t.rules {
		t.jumps = slices.DeleteFunc(t.jumps, func(jump time.Duration) bool { return jump < 0 }) // what was due is due for good
	}
	plain := !t.pools && !t.hands && !t.floors && !t.rules
	if t.waits = plain && t.mishaps >= 20 || planted.waits; t.waits {
		t.maxQueued += 3
		t.jumps = []time.Duration{time.Millisecond, 3 * time.Second, 10 * time.Second, 10 * time.Second}
	}
	return t
}

// steer lets operators steer in some worlds. They are drawn separately, so that all else of a seed stays as it is.
func (t *temper) steer(rng *rand.Rand, planted bug) {
	elsewhere := planted.pools || planted.queueCircuit || planted.hands || planted.floors || planted.rules || planted.waits || planted.ages || planted.moves || planted.few || planted.doubts // where the bug shows
	if t.steers = !elsewhere && !t.hands && !t.pools && !t.waits && rng.IntN(3) == 0 || planted.steers; t.steers {
		t.batch, t.maxQueued, t.jumps = 8, 4+rng.IntN(4), append(t.jumps, 3*time.Second, 10*time.Second, 30*time.Second)
		if t.keyed = planted.keyed; t.keyed == "" {
			t.keyed = []string{ratedPolicy, singlePolicy, windowedPolicy, "", "", ""}[rng.IntN(6)]
		}
		if t.deeds = planted.deeds; t.deeds == "" {
			t.deeds = []deeds{holding, walking, sending, "", "", ""}[rng.IntN(6)]
		}
	}
}

// fleet lets operators have what many models need in some worlds, likewise drawn separately.
func (t *temper) fleet(rng *rand.Rand, planted bug) {
	elsewhere := planted.pools || planted.queueCircuit || planted.hands || planted.floors || planted.rules || planted.waits || planted.steers || planted.ages || planted.moves || planted.few || planted.doubts
	some := func() bool { return rng.IntN(4) == 0 && !elsewhere }
	if t.ages = some() || planted.ages; t.ages {
		t.jumps = append(t.jumps, 10*time.Second, 20*time.Second, 20*time.Second, time.Minute)
	}
	t.moves = some() && !t.rules || planted.moves
	t.few = some() || planted.few
}

// fate draws what becomes of a call; at is nil for an actor between two rounds, who can only go on, die or resign.
func (t *temper) fate(rng *rand.Rand, at *call) fate {
	n := rng.IntN(1000)
	for f := lost; f < fates; f++ {
		if n -= t.faults[f]; n >= 0 {
			continue
		}
		switch {
		case at == nil && f != killed && f != resigned, at != nil && f == resigned:
			return answered
		case at != nil && !at.writes() && (f == late || f == readonly || f == oom):
			return lost
		case at != nil && at.repeats && f == late:
			return unheard
		}
		return f
	}
	return answered
}

// mishap lets something happen that no daemon does.
func (w *world) mishap() {
	if w.temper.pools && w.rng.IntN(6) == 0 {
		w.slay()
		return
	}
	switch n := w.rng.IntN(20); {
	case n < 11:
		w.turn(w.temper.jumps[w.rng.IntN(len(w.temper.jumps))])
	case n < 13:
		w.note("script cache flushed")
		w.server.write.ScriptFlush(context.Background())
	case n < 15 && len(w.delayed) > 0:
		w.deliver()
	case n < 17:
		w.say(w.nonsense())
	case n < 18:
		w.say(w.repetition())
	case n < 19:
		w.strike()
	default:
		w.meddle()
	}
}

// strike keeps workers from working for a while: all of them, so that attempts are still in line when their deadline passes, or one, so
// that others are given its attempts.
func (w *world) strike() {
	if w.rng.IntN(3) == 0 && w.stall() {
		return
	}
	var workers []*actor
	for _, a := range w.actors {
		if works(a) {
			workers = append(workers, a)
		}
	}
	if len(workers) > 0 && w.rng.IntN(2) == 0 {
		one := w.rng.IntN(len(workers))
		workers = workers[one : one+1]
	}
	for _, a := range workers {
		a.until = w.steps + 10 + w.rng.IntN(40)
		w.note("%s stands still", a.name)
	}
	if w.rng.IntN(2) == 0 {
		w.turn(10 * time.Minute)
	}
}

// slay kills a worker pool that has something in hand, or freezes it for longer than its lease: best when it is about to answer.
func (w *world) slay() {
	holds := func(a *actor) bool {
		pool, ok := a.role.(*poolRole)
		return ok && len(pool.held) > 0 && a.until <= w.steps
	}
	at := slices.IndexFunc(w.actors, func(a *actor) bool { return holds(a) && a.at.answers() })
	if at < 0 {
		at = slices.IndexFunc(w.actors, holds)
	}
	if at < 0 {
		return
	}
	a := w.actors[at]
	if w.rng.IntN(3) > 0 {
		w.note("%s stands still", a.name)
		a.until = w.steps + 110 + w.rng.IntN(200) // or until it is forgotten
		return
	}
	w.note("%s is killed", a.name)
	w.resume(a, killed)
	w.bury(a)
}

// stall freezes the poller that leads in the middle of a round for longer than its lease.
func (w *world) stall() bool {
	at := slices.IndexFunc(w.actors, func(a *actor) bool { return a.at != nil && ownerOf(a) != "" && ownerOf(a) == w.before.leader })
	if at < 0 {
		return false
	}
	w.actors[at].until = w.steps + 40 + w.rng.IntN(40)
	w.note("%s stands still", w.actors[at].name)
	w.turn(lease + time.Second)
	return true
}

func (w *world) turn(by time.Duration) {
	w.now, w.setBack = w.now.Add(by), w.setBack || by < 0
	w.server.mini.SetTime(w.now)
	for _, a := range w.actors {
		a.began.clock = append(a.began.clock, w.now)
	}
	w.note("clock %s", by)
}

// say pushes a message that no honest sender wrote just now.
func (w *world) say(mark byte, message string) {
	key := w.server.store.Keys.Output
	if mark == 'c' {
		key = w.server.store.Keys.Control
	}
	w.note("somebody says %c%s", mark, message)
	if _, err := w.server.mini.Push(key, message); err != nil {
		w.broken = err
	}
	w.enter(&deed{now: w.now, sent: []string{string(mark) + message}})
}

// nonsense is malformed, or about nothing that exists.
func (w *world) nonsense() (byte, string) {
	texts := []string{
		"", "{", "[]", "null", `{"type":"success"}`, `{"type":"success","big_table_uid":"m1"}`, "\xff\xfe", `{"type":7}`,
		`{"type":"dance","big_table_uid":"m1","refresh_attempt_uid":"a1"}`, `{"type":"success","big_table_uid":"nobody","refresh_attempt_uid":"a1"}`,
		`{"type":"success","big_table_uid":"m1","refresh_attempt_uid":""}`, `{"type":"failure","big_table_uid":"m2","refresh_attempt_uid":"forged"}`,
		`{"type":"success","big_table_uid":"m1","refresh_attempt_uid":"a1","request_attempt_uid":"a2"}`,
		`{"type":"put","uid":"m1","rrule":"FREQ=NEVER"}`, `{"type":"put","uid":"m1","color":"red"}`, `{"type":"run","uid":"nobody"}`,
		`{"type":"put","uid":"m1","policy":"unheard-of"}`,
	}
	return "oc"[w.rng.IntN(2)], texts[w.rng.IntN(len(texts))]
}

// repetition is a result about an attempt that was once taken: a duplicate, a stale one, or an early one.
func (w *world) repetition() (byte, string) {
	var taken []string
	for _, uid := range slices.Sorted(maps.Keys(w.oracle.attempts)) {
		if w.oracle.attempts[uid].gone {
			taken = append(taken, uid)
		}
	}
	if len(taken) == 0 {
		return w.nonsense()
	}
	uid := taken[w.rng.IntN(len(taken))]
	kinds := []string{`"success"`, `"failure"`, `"interrupted"`, `"started"`, `"postponed","retry_after":60`, `"user_friendly_status","status":"` + uid + `"`}
	return 'o', fmt.Sprintf(`{"type":%s,"big_table_uid":%q,"refresh_attempt_uid":%q}`, kinds[w.rng.IntN(len(kinds))], w.oracle.attempts[uid].model, uid)
}

// meddle writes a score by hand: a dispatcher must mend it and start nothing too early.
func (w *world) meddle() {
	k := w.server.store.Keys
	uid := w.uids[w.rng.IntN(len(w.uids))]
	key := []string{k.Due, k.Running, k.Urgent, k.Running}[w.rng.IntN(4)]
	w.note("somebody writes %s into %s", uid, key)
	w.oracle.meddled[uid] = true
	if _, err := w.server.mini.ZAdd(key, float64(w.now.UnixMilli()-int64(w.rng.IntN(3))*1000), uid); err != nil {
		w.broken = err
	}
	w.enter(&deed{now: w.now})
}
