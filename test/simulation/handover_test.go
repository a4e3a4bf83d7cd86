package simulation

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
)

// line lets models wait in line for places of keys in some steered worlds, drawn separately like these.
func (t *temper) line(rng *rand.Rand, planted bug) {
	elsewhere := planted.name != "" && !planted.lines
	if t.lines = t.steers && !elsewhere && rng.IntN(2) == 0 || planted.lines; t.lines {
		t.maxQueued, t.crowd = 2+rng.IntN(3), false // who shares with nobody notes no window
		t.jumps = slices.DeleteFunc(t.jumps, func(jump time.Duration) bool { return jump < 0 })
	}
}

// linedPolicies are of models that wait for each other.
var linedPolicies = []string{
	`{"timeout":"30s","retries":["0s"],"limits":[{"key":"{label.tenant}","running":1}]}`,
	`{"timeout":"30s","retries":["0s"],"limits":[{"key":"{label.tenant}","running":2}]}`,
	`{"timeout":"30s","retries":[],"limits":[{"key":"{label.tenant}","running":2},{"key":"{n}","running":1}]}`,
	`{"timeout":"30s","retries":["0s"],"limits":[{"key":"{label.tenant}","running":1}],"closed":["c1"]}`,
	`{"timeout":"30s","retries":["0s"],"limits":[{"key":"{label.tenant}","running":2,"rate":"60/m"}],"retry_after_scope":"key"}`,
	`{"timeout":"30s","retries":["0s","5s"],"limits":[{"key":"{label.tenant}","running":2}],"circuit":{"key":"{n}","open_after":"1 of 2","probe":"5s"}}`,
}

// lineUp saves all models anew, most with one policy and of one tenant. They are due, and nobody wants them at once.
func (w *world) lineUp() {
	chosen := linedPolicies[w.rng.IntN(len(linedPolicies))]
	for _, uid := range w.uids {
		policy, tenant := chosen, "t1"
		if w.rng.IntN(5) == 0 {
			policy = linedPolicies[w.rng.IntN(len(linedPolicies))]
		}
		if w.rng.IntN(5) == 0 {
			tenant = "t2"
		}
		put := fmt.Sprintf(`{"type":"put","uid":%q,"payload":{"n":%d},"labels":{"tenant":%q},"policy":%s}`, uid, w.rng.IntN(2), tenant, policy)
		w.send(w.operator.order(`{"type":"remove","uid":%q}`, uid), func(ctx context.Context) error { return w.operator.carryOut(ctx, put) })
	}
}

// beInLine lets models wait for places of keys while workers end what runs, pollers die, dispatchers look now and then, and operators steer.
func (w *world) beInLine() {
	jumps := []time.Duration{time.Millisecond, 100 * time.Millisecond, time.Second, 3 * time.Second, 6 * time.Second}
	for range 3 {
		w.lineUp()
		for range 2 { // the first one may end a round that was under way
			w.dispatch()
		}
		w.ill, w.slow = w.rng.IntN(4) == 0, w.rng.IntN(2) == 0
		for range 100 {
			switch n := w.rng.IntN(40); {
			case n < 2:
				w.turn(jumps[w.rng.IntN(len(jumps))])
			case n == 2:
				w.send(w.meanwhile())
			case n < 6:
				w.finish(w.anyOf("d"))
			case n < 18:
				w.finish(w.anyOf("wfh"))
			case n < 24:
				w.finish(w.anyOf("p"))
			default:
				w.hurry(w.anyOf("p"))
			}
			w.judge()
		}
		w.letGo()
	}
	w.slow, w.ill = false, false
}

// TestPlacesAreHandedOverInWorldsOfLines keeps these worlds from showing nothing: on an average three are.
func TestPlacesAreHandedOverInWorldsOfLines(t *testing.T) {
	worlds, seeds, handovers := bug{steers: true, lines: true}, long.Or(5, 40), 0
	r := newServer(t, worlds)
	for seed := range seeds {
		w, err := r.simulate(uint64(seed)+1, worlds, nil)
		if err != nil {
			t.Fatalf("seed %d: %v", seed+1, err)
		}
		handovers += w.oracle.handovers
	}
	t.Logf("%d places were handed over in %d worlds", handovers, seeds)
	if handovers < seeds {
		t.Errorf("want %d places handed over in as many worlds, got %d", seeds, handovers)
	}
}

// anyOf draws an actor of some kinds, see bear.
func (w *world) anyOf(kinds string) *actor {
	var all []*actor
	for _, a := range w.actors {
		if strings.Contains(kinds, a.name[:1]) {
			all = append(all, a)
		}
	}
	return all[w.rng.IntN(len(all))]
}

// meanwhile draws what an operator does while models wait.
func (w *world) meanwhile() errand {
	o, uid := w.operator, w.uids[w.rng.IntN(len(w.uids))]
	store := w.server.store
	switch w.rng.IntN(6) {
	case 0:
		hold := &model.Hold{ID: holdNames[w.rng.IntN(len(holdNames))], Selector: o.selector(), Since: w.now}
		if w.rng.IntN(2) == 0 {
			hold.Until = w.now.Add(time.Second)
		}
		return func(ctx context.Context) error { return flow.Of(store).PutHold(ctx, hold) }
	case 1:
		id, now := holdNames[w.rng.IntN(len(holdNames))], w.now
		return func(ctx context.Context) error { return only(flow.Of(store).ReleaseHold(ctx, id, 0, now)) }
	case 2:
		calendar, now := nightly(9), w.now
		return func(ctx context.Context) error { return flow.Of(store).PutCalendar(ctx, calendar, now) }
	case 3:
		return o.order(`{"type":"disable","uid":%q}`, uid)
	case 4:
		return o.order(`{"type":"put","uid":%q,"payload":{"n":7}}`, uid)
	default:
		return o.order(`{"type":"run","uid":%q}`, uid)
	}
}

// overhear notes what a poller reads before it hands places over.
func (a *actor) overhear(c *call, k *store.Keys, s *snapshot) {
	for _, command := range c.commands {
		switch args := append(texts(command.Args()), "", ""); {
		case args[0] == "hget" && args[1] == k.Heard && args[2] == store.HeardWindow:
			a.began.line = s
		case args[0] == "hgetall" && args[1] == k.Limits:
			a.began.settings = s
		}
	}
}

// handOver checks a start that a poller has committed: in a place that an end of its batch gives back, while no dispatcher must decide, and of the model
// that is due for longest.
func (p *replay) handOver(m *model.Model, at time.Time) {
	if p.commits == "" {
		return
	}
	kind, name := m.ParkedBy.Split()
	failIf(kind != model.BlockerLimit || p.line == nil, "a poller starts what waits for no place: it waits for %q", m.ParkedBy)
	p.freed[name]--
	failIf(p.freed[name] < 0, "a poller starts more models of the key %s than it has ended", name)
	size, until, _ := strings.Cut(p.line.heard[store.HeardWindow], " ")
	failIf(int64(count(until)) < at.UnixMilli(), "a poller starts a model, and the last dispatcher was heard of too long ago: %q", p.line.heard)
	failIf(len(p.line.input) >= count(size), "a poller starts a model, and %d entries wait in a window of %s", len(p.line.input), size)
	score := p.line.parkedBy[string(m.ParkedBy)][m.UID]
	for uid, since := range p.line.urgent {
		failIf(int64(since) <= at.UnixMilli(), "a poller starts a model while %s is wanted at once", uid)
	}
	for uid, since := range p.line.due {
		failIf(int64(since) <= at.UnixMilli() && since < score, "a poller starts a model while %s is due for longer", uid)
	}
	for uid, since := range p.line.parkedBy[string(m.ParkedBy)] {
		precedes := since < score || since == score && uid < m.UID
		failIf(precedes && p.stands(uid) && p.alike(uid, m, at), "a poller starts a model of the key %s before %s, which is due for longer", name, uid)
	}
	p.handed++
}

// stands reports whether nothing has happened to a model since a poller has read who waits in line.
func (p *replay) stands(uid string) bool {
	return p.steps[uid] == 0 && p.before.models[uid] != nil && p.before.models[uid]["rev"] == p.line.models[uid]["rev"]
}

// alike reports whether the same keys count two models: then the same stops both.
func (p *replay) alike(uid string, m *model.Model, at time.Time) bool {
	keys := func(m *model.Model) (names []string) {
		for _, limit := range p.stops().LimitsOf(m, at) {
			names = append(names, limit.Name)
		}
		return append(names, m.CircuitKey())
	}
	other := p.model(uid)
	return other != nil && slices.Equal(keys(other), keys(m))
}

// checkPlaces checks that a dispatcher is called for each place that an end gives back and nobody has taken, if a model waits for one.
func (p *replay) checkPlaces() {
	for _, name := range slices.Sorted(maps.Keys(p.freed)) {
		blocker := string(model.NewBlocker(model.BlockerLimit, name))
		was, waited := p.before.blockers[blocker]
		if p.freed[name] == 0 || !waited {
			continue
		}
		at := float64(p.freedAt.UnixMilli())
		failIf(p.after.blockers[blocker] > at, "a place of %s is free, and it is to be checked at %f, want %f", name, p.after.blockers[blocker], at)
		failIf(was != at && p.after.wake == 0, "a place of %s is free, and no dispatcher was called", name)
	}
}

// bold hands places over though a dispatcher must decide for one reason: somebody wants a model at once, the input list is full, or none is known to
// live.
type bold struct {
	fixture.Part
	ignores string
}

func (s bold) Waiting(ctx context.Context, places map[string]int, now time.Time) (flow.Waiting, error) {
	w, err := s.Flow.Waiting(ctx, places, now)
	if err != nil || len(w.Heads) > 0 {
		return w, err
	}
	k, until := &s.Keys, redis.Millis(now)
	pipe := s.Clients.Read.Pipeline()
	noted, queued := pipe.HGet(ctx, k.Heard, store.HeardWindow), pipe.LLen(ctx, k.Input)
	urgent, due := pipe.ZCount(ctx, k.Urgent, "-inf", until), pipe.ZCount(ctx, k.Due, "-inf", until)
	_, _ = pipe.Exec(ctx)
	size, lives, _ := strings.Cut(noted.Val(), " ")
	stops := map[string]bool{
		"urgent": urgent.Val() > 0, "due": due.Val() > 0, "window": count(size) <= int(queued.Val()), "note": int64(count(lives)) < now.UnixMilli(),
	}
	delete(stops, s.ignores)
	if slices.Contains(slices.Collect(maps.Values(stops)), true) {
		return w, nil
	}
	w.Heads, w.Window = map[string][]string{}, 1000
	for name, n := range places {
		heads, err := s.ParkedBy(ctx, []model.Blocker{model.NewBlocker(model.BlockerLimit, name)}, func(model.Blocker) int { return n })
		if err != nil {
			return w, err
		}
		w.Heads[name] = heads[0]
	}
	w.Blockers, err = s.Store.Fleet().Blockers(ctx)
	return w, err
}

func boldly(ignores string) func(fixture.Part) queue {
	return func(s fixture.Part) queue { return bold{s, ignores} }
}

// lineBugs are bugs of places that are handed over. Not among them is that another model is due for longer: a dispatcher looks at it before it parks a younger
// one, so that no world shows it. Nor is a start that is not refused with its end: the place is taken then, and the limit refuses it too.
var lineBugs = []bug{
	{name: "a place that nobody takes calls no dispatcher", steers: true, lines: true, mark: "left",
		line: "redis.call('ZADD', waiting_set, 'XX', now, blocker)"},
	{name: "a place that nobody takes is not checked", steers: true, lines: true, mark: "left"},
	{name: "of several places that are given back one counts", steers: true, lines: true, mark: "freed", line: "places_of[blocker] = 1"},
	{name: "a start takes all places that are given back", steers: true, lines: true, mark: "taken over", line: "places_of[blocker] = -1000"},
	{name: "a place is handed over whatever is held", steers: true, lines: true, lie: liar{waiting: func(w *flow.Waiting) { w.Blockers.Holds = nil }}},
	{name: "a place is handed over whatever the calendar says", first: 7, steers: true, lines: true, lie: liar{waiting: func(w *flow.Waiting) { w.Blockers.Calendars = nil }}},
	{name: "a start ignores that an end opens its circuit", first: 32, steers: true, lines: true, mark: "check", line: unless("args[1] == 'HGET'")},
	{name: "a place is handed over though a model is wanted at once", first: 9, steers: true, lines: true, store: boldly("urgent")},
	{name: "a place is handed over though the input list is full", first: 55, steers: true, lines: true, store: boldly("window")},
	{name: "a place is handed over though no dispatcher lives", steers: true, lines: true, store: boldly("note")},
	{name: "the last of a line gets the place", steers: true, lines: true, lie: liar{waiting: func(w *flow.Waiting) {
		for _, heads := range w.Heads {
			slices.Reverse(heads)
		}
	}}},
}
