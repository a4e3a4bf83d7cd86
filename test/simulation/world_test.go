package simulation

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/dispatcher"
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
	setBack   bool // the clock was, once
	calm      bool // no more faults, and all work succeeds
	steps     int
	writes    int // executed calls that changed something since all is calm
	attempts  int
	births    int
	storms    int // sequences of commands that applications have still to push
	saves     int
	named     int // commands that got an id
	bulks     int // that operators have begun
	rules     int // that the shared policy has had so far
	schedules *schedule.Cache
	policies  map[string]policy.Policy

	lines func(string) // the trace; nil: none
	sum   uint64       // of all lines
}

var start = time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)

func newWorld(r *server, seed uint64, planted bug, lines func(string)) (*world, error) {
	w := &world{
		server: r, rng: rand.New(rand.NewPCG(seed, 0x5eed)), now: start, back: make(chan struct{}), oracle: newOracle(), lines: lines,
		queue: r.store, uids: []string{"m1", "m2", "m3"}, schedules: &schedule.Cache{}, policies: map[string]policy.Policy{},
	}
	if planted.store != nil {
		w.queue = planted.store(r.store)
	}
	if w.temper = newTemper(w.rng, planted); w.temper.hands {
		w.uids = append(w.uids, "m4", "m5", "m6")
	}
	w.temper.steer(rand.New(rand.NewPCG(seed, 0xf1ee7)), planted)
	w.oracle.steers, r.steers = w.temper.steers, w.temper.steers
	if w.temper.steers {
		w.uids = append(w.uids, "m4", "m5", "m6")
	}
	r.mini.FlushAll()
	if err := r.loadScripts(); err != nil {
		return w, err
	}
	r.mini.SetTime(w.now)
	if w.temper.rules {
		r.mini.HSet(r.store.Keys.Policies(), sharedPolicy, sharedText(w.rules))
	}
	for name, value := range w.temper.queueCircuit {
		r.mini.HSet(r.store.Keys.QueueCircuit(), name, value)
	}
	w.before = r.look(w.uids, nil, nil)
	return w, w.populate()
}

func (w *world) populate() error {
	foreign := []string{"f", "h"}[w.rng.IntN(2)]
	if w.temper.pools {
		foreign = "w"
	}
	own := "w"
	if w.temper.waits {
		own, foreign = "f", "w"
	}
	for _, kind := range []string{"d", "d", "p", "p", own, own, foreign} {
		if err := w.bear(kind); err != nil {
			return err
		}
	}
	if w.temper.hands || w.temper.floors || w.rng.IntN(2) == 0 {
		w.storms = 1 + w.rng.IntN(4)
		if w.temper.hands || w.temper.floors {
			w.storms *= 3
		}
		if err := w.bear("a"); err != nil {
			return err
		}
	}
	spare := 4 + w.rng.IntN(12)
	if w.temper.pools || w.temper.waits {
		spare *= 5 // little is planned within the minute that such a run has
	}
	if w.temper.steers {
		spare += 40
		for _, uid := range w.uids {
			w.say('c', steeredCommand(w.rng, uid))
		}
	}
	w.operator = w.newOperator(spare)
	w.spawn("operator", w.operator)
	return nil
}

func (w *world) newOperator(spare int) *operatorRole {
	o := &operatorRole{server: w.server, rng: w.rng, uids: w.uids, spare: spare, named: &w.named, rules: w.rulesOf(), brief: w.temper.waits, turns: w.temper.queueCircuit != nil}
	if w.temper.steers {
		o.steers = &w.bulks
	}
	return o
}

// bear starts a process of a kind: a application, d dispatcher, p poller, w worker pool, h careful worker of other people, f careless one.
func (w *world) bear(kind string) error {
	w.births++
	name := kind + strconv.Itoa(w.births)
	role, err := w.role(kind, name)
	if err == nil {
		w.spawn(name, role)
	}
	return err
}

func (w *world) role(kind, name string) (role, error) {
	switch kind {
	case "d":
		q := w.queue
		if w.temper.crowd {
			q = crowded{q}
		}
		return newDispatcher(q, dispatcher.Config{Owner: name, Batch: w.temper.batch, MaxQueued: w.temper.maxQueued, NewUID: w.newUID})
	case "p":
		owner := name
		if n := len(w.owners); n > 2 && w.rng.IntN(4) == 0 && !w.alive(w.owners[n-1]) {
			owner = w.owners[n-1] // restarted under a name that an operator chose
		} else {
			w.owners = append(w.owners, owner)
		}
		return newPoller(w.queue, owner, 2+w.rng.IntN(6))
	case "a":
		return &applicationRole{server: w.server, rng: w.rng, uids: w.uids, left: &w.storms, saves: &w.saves, hasty: w.temper.hands}, nil
	default:
		good := func() bool { return w.calm }
		play := &workerRole{server: w.server, rng: w.rng, name: name, good: good, careless: kind == "f", slow: w.temper.pools || w.temper.waits, floors: w.temper.floors, rough: w.temper.steers}
		if kind != "w" {
			return play, nil
		}
		return &poolRole{queue: w.queue, rng: w.rng, play: play, name: w.newPool, owner: w.newPool()}, nil
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

// step lets one actor come to its next call, or lets something happen to the world.
func (w *world) step() error {
	w.steps++
	if w.rng.IntN(100) < w.temper.mishaps {
		w.mishap()
		return w.broken
	}
	a := w.pick()
	if a == nil {
		return w.broken
	}
	f := w.temper.fate(w.rng, a.at)
	if _, pool := a.role.(*poolRole); pool && a.at != nil && f == answered && w.rng.IntN(1000) < w.temper.deaf {
		f = unheard
	}
	if w.temper.waits && works(a) && w.rng.IntN(3) == 0 {
		a.until = w.steps + 10 + w.rng.IntN(30)
		w.note("%s rests", a.name)
		return nil
	}
	if w.rng.IntN(100) < w.temper.freezes {
		a.until = w.steps + 20 + w.rng.IntN(60)
		w.note("%s freezes", a.name)
		return nil
	}
	w.note("%s at %s: %s", a.name, a.at, f)
	w.resume(a, f)
	return w.bury(a)
}

// works reports whether an actor is a worker.
func works(a *actor) bool {
	switch a.role.(type) {
	case *workerRole, *poolRole:
		return true
	default:
		return false
	}
}

// pick chooses who has the baton next.
func (w *world) pick() *actor {
	if victim := w.victim(); victim != nil && w.rng.IntN(3) > 0 {
		victim.until = 0
		return victim
	}
	ready := make([]*actor, 0, len(w.actors))
	for _, a := range w.actors {
		if a.until > w.steps && !w.forgotten(a) {
			continue
		}
		ready = append(ready, a)
		if _, pool := a.role.(*poolRole); pool && w.temper.pools {
			ready = append(ready, a, a, a)
		}
		if a.role == w.operator && w.temper.steers {
			ready = append(ready, a)
		}
	}
	if len(ready) == 0 {
		return nil
	}
	return ready[w.rng.IntN(len(ready))]
}

// forgotten reports whether others have requeued what a worker pool had taken.
func (w *world) forgotten(a *actor) bool {
	pool, ok := a.role.(*poolRole)
	_, listed := w.before.workers[ownerOf(a)]
	return ok && pool.known && !listed
}

// victim is whose messages or attempts another one is about to take over: just then it may come back.
func (w *world) victim() *actor {
	for _, a := range w.actors {
		owner := takenOver(w.server.store.Keys, a.at)
		for _, other := range w.actors {
			if other != a && owner != "" && ownerOf(other) == owner {
				return other
			}
		}
	}
	return nil
}

// bury replaces an actor that has died by a new one of its kind.
func (w *world) bury(a *actor) error {
	if w.broken != nil || !a.ended {
		return w.broken
	}
	w.actors = slices.DeleteFunc(w.actors, func(other *actor) bool { return other == a })
	if a.role == w.operator {
		orders := w.operator.orders
		w.operator = w.newOperator(w.operator.spare)
		w.operator.orders = orders
		w.births++
		w.spawn("operator", w.operator)
		return nil
	}
	return w.bear(a.name[:1])
}

// execute lets Redis carry out a call and checks what it did.
func (w *world) execute(a *actor, c *call) error {
	err := c.execute()
	if w.lines != nil {
		w.note("    %v", c.commands)
	}
	if !c.writes() {
		return err
	}
	d := &deed{now: w.now, step: w.steps, moment: c.began, sent: sent(c.commands), work: true}
	if a != nil {
		d.moment = a.began
	}
	for _, command := range c.commands {
		d.pops = d.pops || command.Name() == "lpop"
		if err == nil {
			d.read(w.server.store.Keys, command)
		}
		if args := command.Args(); len(args) > 3 && args[3] == w.server.store.Keys.Output() {
			d.said = texts(args[4:])
		}
	}
	if a != nil && a.role == w.operator {
		d.orders = &w.operator.orders
	} else if a == nil {
		d.orders = &w.operator.orders // a delayed request may be the operator's
	}
	w.enter(d)
	if a != nil && d.looks {
		a.began.saw = &sight{snapshot: d.after, now: d.now, meddled: len(w.oracle.meddled) > 0}
	}
	return err
}

// enter reads the queue after a deed and enters it in the oracle.
func (w *world) enter(d *deed) {
	d.before, d.after = w.before, w.server.look(w.uids, w.owners, w.pools)
	d.schedules, d.policies, d.maxQueued, d.batch, d.setBack = w.schedules, w.policies, w.temper.maxQueued, w.temper.batch, w.setBack
	w.before = d.after
	if !maps.Equal(d.before.queueCircuit, d.after.queueCircuit) {
		for _, a := range w.actors {
			a.began.queueCircuits = append(a.began.queueCircuits, d.after.queueCircuit)
		}
	}
	if text := d.after.policies[sharedPolicy]; text != d.before.policies[sharedPolicy] {
		for _, a := range w.actors {
			a.began.shared = append(a.began.shared, text)
		}
	}
	if fmt.Sprint(d.before.circuits) != fmt.Sprint(d.after.circuits) {
		for _, a := range w.actors {
			a.began.circuits = append(a.began.circuits, d.after.circuits)
		}
	}
	if !slices.Equal(d.before.front, d.after.front) {
		for _, a := range w.actors {
			a.began.fronts = append(a.began.fronts, d.after.front)
		}
	}
	if w.calm && d.changed() {
		w.writes++
	}
	if w.broken == nil {
		w.broken = w.oracle.account(d)
	}
	if w.before.wake > 0 && w.rng.IntN(2) == 0 {
		w.server.mini.Del(w.server.store.Keys.Wake()) // a dispatcher heard of it
		w.before.wake = 0
	}
}

// changed reports whether a deed did more than show a sign of life.
func (d *deed) changed() bool {
	return len(d.after.journal) > 0 || len(d.sent) > 0 || len(d.before.input) != len(d.after.input) ||
		fmt.Sprint(d.before.messages()) != fmt.Sprint(d.after.messages()) || fmt.Sprint(d.before.claimed) != fmt.Sprint(d.after.claimed) ||
		fmt.Sprint(d.before.due, d.before.urgent, d.before.running, d.before.taken) != fmt.Sprint(d.after.due, d.after.urgent, d.after.running, d.after.taken)
}

// sent lists the messages that commands push, with the mark of their source.
func sent(commands []redis.Cmder) (messages []string) {
	marks := map[string]string{queueName + "-output": "o", queueName + "-control": "c"}
	for _, command := range commands {
		args := command.Args()
		if command.Name() != "rpush" {
			continue
		}
		for _, message := range args[2:] {
			messages = append(messages, marks[fmt.Sprint(args[1])]+fmt.Sprint(message))
		}
	}
	return messages
}

func texts(args []any) []string {
	all := make([]string, len(args))
	for i, arg := range args {
		all[i] = fmt.Sprint(arg)
	}
	return all
}

// delay keeps a request whose caller has given up; it is executed later.
func (w *world) delay(a *actor, c *call) {
	late := delayed{began: a.began}
	for _, command := range c.commands {
		late.pipeline = append(late.pipeline, slices.Clone(command.Args()))
	}
	w.delayed = append(w.delayed, late)
}

// delayed is a request whose caller has given up.
type delayed struct {
	pipeline [][]any
	began    moment // of its caller's round
}

// deliver executes a delayed request.
func (w *world) deliver() {
	at := w.rng.IntN(len(w.delayed))
	pipeline, began := w.delayed[at].pipeline, w.delayed[at].began
	w.delayed = slices.Delete(w.delayed, at, at+1)
	ctx := context.Background()
	pipe := w.server.write.Pipeline()
	for _, args := range pipeline {
		pipe.Do(ctx, args...)
	}
	c := &call{began: began}
	c.execute = func() error { var err error; c.commands, err = pipe.Exec(ctx); return err }
	for _, args := range pipeline {
		c.commands = append(c.commands, redis.NewCmd(ctx, args...))
	}
	w.note("delivered late: %s", c)
	_ = w.execute(nil, c)
}

// close ends every actor.
func (w *world) close() {
	for _, a := range w.actors {
		if !a.ended {
			w.resume(a, killed)
		}
	}
}

// note adds a line to the trace.
func (w *world) note(format string, values ...any) {
	if w.lines == nil {
		return
	}
	line := fmt.Sprintf("%4d %s ", w.steps, w.now.Format("15:04:05.000")) + fmt.Sprintf(format, values...)
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, w.sum, line)
	w.sum = h.Sum64()
	w.lines(strings.ReplaceAll(line, "\n", " "))
}
