package simulation

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

// world is one run of the simulation. Everything in it follows from its seed.
type world struct {
	server *server
	rng    *rand.Rand
	temper temper
	queue  queue
	now    time.Time
	uids   []string

	actors  []*actor
	back    chan struct{} // the baton on its way to the scheduler
	owners  []string      // of every poller that there ever was
	pools   []string      // of every worker pool that there ever was
	delayed []delayed     // requests that are executed after their callers gave up

	oracle    *oracle
	before    *snapshot
	broken    error // the first promise that was broken
	operator  *operatorRole
	setBack   bool             // the clock was, once
	looked    time.Time        // when a dispatcher looked last
	outage    outage           // the last time in which none did
	calm      bool             // no more faults, and all work succeeds
	ill       bool             // all work fails
	slow      bool             // most work takes time
	series    map[string][]int // model -> the rows that its next successes report
	steps     int
	writes    int // executed calls that changed something since all is calm
	attempts  int
	births    int
	storms    int // sequences of commands that applications have still to push
	saves     int
	named     int // commands that got an id
	bulks     int // that operators have begun
	runs      int // bulks that run models of the shared policy
	packed    []luggage
	rules     int // that the shared policy has had so far
	schedules *schedule.Cache
	policies  map[string]policy.Policy
	believed  func(*model.Model)
	over      func(*ahead) poller.Store

	lines func(string) // the trace; nil: none
	sum   uint64       // of all lines, and of the content of Redis after each command
}

var start = time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)

func newWorld(r *server, seed uint64, planted bug, lines func(string)) *world {
	w := &world{
		server: r, rng: rand.New(rand.NewPCG(seed, 0x5eed)), now: start, back: make(chan struct{}), oracle: newOracle(), lines: lines,
		uids: []string{"m1", "m2", "m3"}, schedules: &schedule.Cache{}, policies: map[string]policy.Policy{},
	}
	w.believed, w.over = planted.believed, planted.over
	if w.temper = newTemper(w.rng, planted); w.temper.hands {
		w.uids = append(w.uids, "m4", "m5", "m6")
	}
	w.temper.steer(rand.New(rand.NewPCG(seed, 0xf1ee7)), planted)
	w.temper.fleet(rand.New(rand.NewPCG(seed, 0xa9e5)), planted)
	w.temper.time(rand.New(rand.NewPCG(seed, 0x71e5)), planted)
	w.temper.listen(rand.New(rand.NewPCG(seed, 0x511e)), planted)
	w.temper.doubt(rand.New(rand.NewPCG(seed, 0xd0b7)), planted)
	w.temper.leave(rand.New(rand.NewPCG(seed, 0xaa1e)), planted)
	w.temper.line(rand.New(rand.NewPCG(seed, 0x11e5)), planted)
	if r.store = r.grace[0]; w.temper.away {
		r.store = r.grace[1]
	}
	if r.store.Config.FewItems = r.fewItems; planted.name == "" && seed%2 == 1 {
		r.store.Config.FewItems = store.None
	}
	w.queue = planted.wrap(fixture.Whole(r.store))
	w.oracle.steers, r.steers, r.few = w.temper.steers, w.temper.steers, w.temper.few
	if w.temper.steers {
		w.uids = append(w.uids, "m4", "m5", "m6")
	}
	r.mini.FlushAll()
	must(r.loadScripts())
	r.mini.SetTime(w.now)
	if w.temper.rules {
		text, err := json.Marshal(shared(w.rules))
		must(err)
		r.mini.HSet(r.store.Keys.Policies, sharedPolicy, string(text))
	}
	for name, value := range w.temper.queueCircuit {
		r.mini.HSet(r.store.Keys.QueueCircuit, name, value)
	}
	w.before = r.look(w.uids, nil, nil)
	w.populate()
	return w
}

func (w *world) populate() {
	foreign := []string{"f", "h"}[w.rng.IntN(2)]
	if w.temper.pools {
		foreign = "w"
	}
	own := "w"
	if w.temper.waits {
		own, foreign = "f", "w"
	}
	for _, kind := range []string{"d", "d", "p", "p", own, own, foreign} {
		w.bear(kind)
	}
	if w.temper.hands || w.temper.floors || w.rng.IntN(2) == 0 {
		w.storms = 1 + w.rng.IntN(4)
		if w.temper.hands || w.temper.floors {
			w.storms *= 3
		}
		w.bear("a")
	}
	spare := 4 + w.rng.IntN(12)
	if w.temper.pools || w.temper.waits {
		spare *= 5 // little is planned within the minute that such a run has
	}
	if w.temper.moves {
		spare += 10
	}
	if w.temper.timed {
		spare += 20
		for _, uid := range w.uids {
			w.say('c', timedCommand(w.rng, uid))
		}
	}
	if w.temper.silent {
		spare += 40
		for _, uid := range w.uids {
			w.say('c', silentCommand(w.rng, uid))
		}
	}
	if w.temper.doubts {
		spare += 40
		for i, uid := range w.uids {
			w.say('c', fmt.Sprintf(`{"type":"put","uid":%q,"payload":{"n":1},%s}`, uid, guardedSaves[i%len(guardedSaves)]))
		}
	}
	if w.temper.steers {
		spare += 40
		for _, uid := range w.uids {
			text := steeredCommand(w.rng, uid, w.temper.keyed)
			if w.temper.ages {
				text = ageing(w.rng, text)
			}
			w.say('c', text)
		}
	}
	w.operator = &operatorRole{world: w, spare: spare}
	w.spawn("operator", w.operator)
}

// bear starts a process of a kind: a application, d dispatcher, p poller, w worker pool, h careful worker of other people, f careless one.
func (w *world) bear(kind string) {
	w.births++
	name := kind + strconv.Itoa(w.births)
	role, err := w.role(kind, name)
	must(err)
	w.spawn(name, role)
}

func (w *world) role(kind, name string) (role, error) {
	switch kind {
	case "d":
		q := w.queue
		if w.temper.crowd {
			q = crowded{q}
		}
		return newDispatcher(q, dispatcher.Config{Owner: name, WorkerLease: lease, Batch: w.temper.batch, MaxQueued: w.temper.maxQueued, NewUID: w.newUID})
	case "p":
		owner := name
		if n := len(w.owners); n > 2 && w.rng.IntN(4) == 0 && !w.alive(w.owners[n-1]) {
			owner = w.owners[n-1] // restarted under a name that an operator chose
		} else {
			w.owners = append(w.owners, owner)
		}
		batch := 2 + w.rng.IntN(6)
		if w.births%2 == 0 {
			return w.newAhead(owner, batch)
		}
		return newPoller(w.queue, poller.Config{Owner: owner, Batch: batch, NewUID: w.newUID})
	case "a":
		return &applicationRole{world: w}, nil
	default:
		play := &workerRole{world: w, name: name, careless: kind == "f"}
		if kind != "w" {
			return play, nil
		}
		return &poolRole{play: play, owner: w.newPool()}, nil
	}
}

func (w *world) alive(owner string) bool {
	return slices.ContainsFunc(w.actors, func(a *actor) bool { return ownerOf(a) == owner })
}

func (w *world) newUID() string {
	w.attempts++
	return "a" + strconv.Itoa(w.attempts)
}

func (w *world) newPool() string {
	w.pools = append(w.pools, "w"+strconv.Itoa(len(w.pools)+1))
	return w.pools[len(w.pools)-1]
}

func (w *world) close() {
	for _, a := range w.actors {
		if !a.ended {
			w.resume(a, killed)
		}
	}
}

func (w *world) note(format string, values ...any) {
	if w.lines == nil {
		return
	}
	line := fmt.Sprintf("%4d %s ", w.steps, w.now.Format("15:04:05.000")) + fmt.Sprintf(format, values...)
	w.remember(waysOfScripts.ReplaceAllString(line, ""))
	w.lines(strings.ReplaceAll(line, "\n", " "))
}

// waysOfScripts matches the parts of a line that differ between scripts that do the same.
var waysOfScripts = regexp.MustCompile(`\b[0-9a-f]{40}\b|total_commands_processed:\d+`)

// remember adds a part of the course to its sum.
func (w *world) remember(part any) {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, w.sum, part)
	w.sum = h.Sum64()
}
