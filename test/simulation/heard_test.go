package simulation

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
)

// grace is for how long nothing expires after an outage, in the worlds that have one, and gap how long all dispatchers may be away before it is one.
const (
	grace = 15 * time.Second
	gap   = 2 * time.Second
)

// push is when a message of a worker reached Redis.
type push struct {
	at   time.Time
	step int
}

// outage is a time in which no dispatcher looked.
type outage struct{ from, to time.Time }

// leave are worlds with such a grace, drawn separately like the steered ones.
func (t *temper) leave(rng *rand.Rand, planted bug) {
	elsewhere := planted.name != "" && !planted.away
	plain := !t.steers && !t.hands && !t.timed && !t.silent && !t.pools && !t.waits && !t.doubts && !t.rules
	if t.away = !elsewhere && plain && rng.IntN(2) == 0 || planted.away; t.away {
		t.crowd = false // who shares with nobody is not missed
		t.jumps = slices.DeleteFunc(t.jumps, func(jump time.Duration) bool { return jump < 0 })
	}
}

// beAway lets deadlines pass while workers take their time, pollers die, and all dispatchers or all pollers are away now and then.
func (w *world) beAway() {
	w.slow = true
	jumps := []time.Duration{time.Millisecond, time.Second, time.Second, 1500 * time.Millisecond, 1900 * time.Millisecond, 4 * time.Second, 20 * time.Second}
	away := ""
	for range w.rng.IntN(200) + 200 {
		if w.rng.IntN(25) == 0 {
			away = []string{"d", "p", "", ""}[w.rng.IntN(4)]
			w.note("away: %q", away)
		}
		a := w.actors[w.rng.IntN(len(w.actors))]
		switch kind := a.name[:1]; {
		case w.rng.IntN(4) == 0:
			by := jumps[w.rng.IntN(len(jumps))]
			if at, waiting := w.next(); waiting && at.After(w.now) && w.rng.IntN(3) == 0 {
				by = at.Sub(w.now)
			}
			w.turn(by)
		case kind == away:
		case a.role == w.operator:
			w.send(w.operator.order(fmt.Sprintf(briefCommands[w.rng.IntN(len(briefCommands))], w.uids[w.rng.IntN(len(w.uids))], w.steps)+"%.0s", ""))
		case kind == "p":
			w.hurry(a)
		default:
			w.finish(a)
		}
		w.judge()
	}
	w.slow = false
}

// beBereaved freezes workers over their attempts, begun or not, while all dispatchers are away until the deadline has passed. The attempts of pools
// are handed back behind that.
func (w *world) beBereaved() {
	w.slow = true
	for i, uid := range w.uids {
		w.send(w.operator.order(fmt.Sprintf(briefCommands[i%len(briefCommands)], uid, w.steps)+"%.0s", ""))
	}
	for range 2 { // the first one may end a round that was under way
		w.dispatch()
	}
	for _, a := range slices.Clone(w.actors) {
		for calls := w.rng.IntN(12); works(a) && !a.ended && calls > 0; calls-- {
			w.hurry(a)
		}
	}
	w.slow = false
	w.outlive()
}

// hurry lets an actor come to its next call. It may die there, or lose it.
func (w *world) hurry(a *actor) {
	f := answered
	if a.at != nil && w.rng.IntN(15) == 0 {
		f = []fate{killed, orphaned, lost, unheard}[w.rng.IntN(4)]
	}
	w.steps++
	w.note("%s at %s: %s", a.name, a.at, f)
	w.resume(a, f)
	w.bury(a)
}

// look notes an outage that ends now. Of two that follow each other, the later one counts.
func (w *world) look() {
	if !w.looked.IsZero() && w.now.Sub(w.looked) > gap {
		w.outage = outage{w.looked, w.now}
	}
	w.looked = w.now
}

// hear notes which messages of workers wait for pollers, and since when.
func (o *oracle) hear(d *deed) {
	for _, message := range d.sent {
		if message[0] == 'o' {
			o.unheard[message] = append(slices.Clip(o.unheard[message]), push{d.now, d.step})
		}
	}
}

// forget leaves out messages that are done with.
func (o *oracle) forget(consumed []string) {
	for _, message := range consumed {
		if waiting := o.unheard[message]; len(waiting) > 1 {
			o.unheard[message] = waiting[1:]
		} else {
			delete(o.unheard, message)
		}
	}
}

// spoken checks that an attempt which ends by time has said nothing in time that no poller has heard, and that its worker could have spoken. What was
// pushed while the dispatcher decided comes too late.
func (p *replay) spoken(m *model.Model) {
	expired := expires(fields(m))
	if p.saw != nil && p.saw.meddled {
		return
	}
	for _, text := range slices.Sorted(maps.Keys(p.oracle.unheard)) {
		message, err := model.Wire{}.DecodeMessage([]byte(text[1:]))
		if err != nil || message.UID != m.UID || message.AttemptUID != m.AttemptUID {
			continue
		}
		for _, pushed := range p.oracle.unheard[text] {
			inTime := pushed.at.Before(expired)
			if p.saw != nil {
				inTime = !pushed.at.After(expired) && pushed.step < p.saw.step
			}
			failIf(inTime, "the attempt has expired at %s, and nobody has heard what was said at %s: %s", expired, pushed.at, text)
		}
	}
	if p.saw == nil || p.saw.outage.to.IsZero() {
		return
	}
	out := p.saw.outage
	failIf(expired.After(out.from.Add(-grace)) && p.saw.now.Before(out.to.Add(grace)),
		"the attempt has expired at %s, and ends at %s: nobody was there from %s to %s", expired, p.saw.now, out.from, out.to)
}

// unjudged reports whether the deadline of a model was not judged yet when the dispatcher looked, and has not moved since. Who is no dispatcher judges
// by the clock alone.
func (p *replay) unjudged(uid string, deadline time.Time) bool {
	return p.saw != nil && instant(p.saw.models[uid]["deadline_at"]).Equal(deadline) && deadline.After(p.saw.judged())
}

// judged is up to when deadlines are judged: up to when all messages are applied, by what pollers have noted, and workers could have spoken.
func (s *sight) judged() time.Time {
	at := s.now
	noted := func(text string) {
		ms, _ := strconv.ParseInt(text, 10, 64)
		if to := time.UnixMilli(ms); to.After(s.now) { // the clock was set back since
			at = time.Time{}
		} else if to.Add(-time.Millisecond).Before(at) {
			at = to.Add(-time.Millisecond)
		}
	}
	for name, text := range s.heard {
		if strings.HasPrefix(name, "poller ") {
			noted(strings.Fields(text)[0])
		}
	}
	if len(s.output) > 0 {
		noted(s.heard["claimed"])
	}
	if from := s.outage.from.Add(-grace); s.now.Before(s.outage.to.Add(grace)) && from.Before(at) {
		at = from
	}
	return at
}

// unforgiving judges by the clock alone what a dead worker had taken.
type unforgiving struct{ fixture.Part }

func (s unforgiving) RequeueExpired(ctx context.Context, now, _ time.Time, lease time.Duration) ([]store.ExpiredWorker, error) {
	return s.Part.RequeueExpired(ctx, now, now, lease)
}

// heardBugs are bugs of messages that nobody has heard, and of outages.
var heardBugs = []bug{
	{name: "messages in output are not looked at", first: 4, away: true, mark: "pushed"},
	{name: "what a dead poller has claimed is not looked at", away: true, file: "read-due.lua", mark: "claimed", line: "at = at"},
	{name: "a poller that is left with messages forgets that it holds them", first: 5, away: true, file: "claim-messages.lua", mark: "applied", line: "local applied = tonumber(ARGV[8]) > 0 and last"},
	{name: "a poller does not note what it holds", away: true, mark: "holds", line: "redis.call('HSET', heard, 'claimed', claimed_to, 'mark', mark)"},
	{name: "an adopter does not note what it has adopted", first: 5, away: true, mark: "adopted"},
	{name: "an outage is not noted", first: 6, away: true, mark: "gap"},
	{name: "there is no grace behind an outage", away: true, mark: "grace"},
	{name: "what a dead worker had taken is dropped behind an outage", away: true, store: func(s fixture.Part) queue { return unforgiving{s} }},
	{name: "a grace that never ends", first: 6, away: true, mark: "grace ends", line: "if from then"},
}
