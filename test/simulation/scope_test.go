package simulation

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

// ground is shared by all processes of the small scope: the content of Redis, the known past, and the clock.
type ground struct {
	redis   *snapshot
	oracle  *oracle
	now     time.Time
	pollers []string // all owners that there ever were
	sum     [16]byte // two grounds with the same sum are the same
}

// place is one state of the small scope: the ground, and the state of each process.
type place struct {
	*ground
	tapes   []tape   // by process; an empty one is between two rounds
	owners  []string // by process: under which name a poller works
	crashes int      // that may still happen
	ticks   int      // minutes that may still pass
}

const processes = "ddppww"

// move is one way on from a place: a process comes to its next call, dies, or the clock turns.
type move struct {
	process int // -1: the clock
	dies    bool
}

func (m move) String() string {
	switch {
	case m.process < 0:
		return "a minute passes"
	case m.dies:
		return fmt.Sprintf("%c%d dies", processes[m.process], m.process+1)
	default:
		return fmt.Sprintf("%c%d", processes[m.process], m.process+1)
	}
}

var scopeUIDs = []string{"m1", "m2"}

type scope struct {
	server    *server
	schedules *schedule.Cache
	policies  map[string]policy.Policy
	known     map[step]result // what a process does depends on the ground and on its own past only
}

// step is a process that comes to its next call, and result what follows.
type step struct {
	ground [16]byte
	owner  string
	tape   uint64
}

type result struct {
	*ground
	tape tape
}

// open returns the first place: two models are due, and somebody wants one of them at once.
func (s *scope) open() (*place, error) {
	s.server.mini.FlushAll()
	s.server.mini.SetTime(start)
	if err := s.server.loadScripts(); err != nil {
		return nil, err
	}
	p := &place{
		ground: &ground{redis: s.server.look(scopeUIDs, nil, nil), oracle: newOracle(), now: start},
		tapes:  make([]tape, len(processes)), crashes: 1, ticks: 2,
	}
	for i := range processes {
		p.owners = append(p.owners, string(processes[i])+strconv.Itoa(i+1))
	}
	for _, text := range []string{
		`{"type":"put","uid":"m1","policy":{"timeout":"1m","retries":["0s"]}}`, `{"type":"put","uid":"m2","policy":{"timeout":"1m","retries":["0s"]}}`,
	} {
		p.push(text)
	}
	p.seal()
	for len(p.redis.models) < 2 { // the first poller stores both
		next, err := s.play(p, move{process: 2})
		if err != nil {
			return nil, err
		}
		p = next
	}
	p.tapes[2] = tape{}
	p.push(`{"type":"run","uid":"m1","force":true}`)
	p.seal()
	return p, nil
}

func (g *ground) push(text string) {
	g.redis.control = append(g.redis.control, text)
	g.oracle.pushed++
	g.oracle.commandQueue.push([]string{"c" + text})
}

// later returns a place further on: a worker has taken one attempt, the other one waits, and their deadline has passed.
func (s *scope) later() (*place, error) { return s.goOn(0, 0, 0, 4, -1) }

// unheard returns one in which the attempt was answered before, and nobody has heard of it.
func (s *scope) unheard() (*place, error) { return s.goOn(0, 0, 0, 4, 4, -1) }

// goOn returns the place that moves of processes lead to.
func (s *scope) goOn(moves ...int) (*place, error) {
	p, err := s.open()
	for _, process := range moves {
		if err == nil {
			p, err = s.play(p, move{process: process})
		}
	}
	return p, err
}

func (p *place) moves() (all []move) {
	for i := range processes {
		all = append(all, move{process: i})
		if p.crashes > 0 && len(p.tapes[i].calls) > 0 {
			all = append(all, move{process: i, dies: true})
		}
	}
	if p.ticks > 0 {
		all = append(all, move{process: -1})
	}
	return all
}

func (s *scope) play(from *place, m move) (*place, error) {
	to := *from
	to.tapes, to.owners = slices.Clone(from.tapes), slices.Clone(from.owners)
	switch {
	case m.process < 0:
		turned := *from.ground
		turned.now = turned.now.Add(time.Minute)
		turned.seal()
		to.ground, to.ticks = &turned, to.ticks-1
		return &to, nil
	case m.dies:
		to.crashes--
		to.tapes[m.process] = tape{}
		if processes[m.process] == 'p' {
			to.owners[m.process] += "'"
		}
		return &to, nil
	}
	key := step{from.sum, from.owners[m.process], from.tapes[m.process].sum}
	r, known := s.known[key]
	if !known {
		var err error
		if r, err = s.act(from, m.process); err != nil {
			return nil, err
		}
		s.known[key] = r
	}
	to.ground, to.tapes[m.process] = r.ground, r.tape
	return &to, nil
}

// act lets a process come to its next call on the server.
func (s *scope) act(from *place, process int) (result, error) {
	s.restore(from)
	g, wrote := *from.ground, false
	if owner := from.owners[process]; processes[process] == 'p' && !slices.Contains(g.pollers, owner) {
		g.pollers = append(slices.Clone(g.pollers), owner)
	}
	var broken error
	t := play(from.tapes[process], s.round(from, process), func(c *call) error {
		err := c.execute()
		if c.writes() && !c.idle() && broken == nil {
			wrote, broken = true, s.account(&g, c, err)
		}
		return err
	})
	if !wrote {
		return result{from.ground, t}, broken
	}
	g.seal()
	return result{&g, t}, broken
}

// round is the work of a process between two rests.
func (s *scope) round(at *place, process int) func(context.Context, *player) {
	return func(ctx context.Context, p *player) {
		var role role
		var err error
		switch processes[process] {
		case 'd':
			name := at.owners[process]
			uid := func() string { return fmt.Sprintf("a%d%s", len(at.oracle.attempts), name) }
			drawn := 0
			role, err = newDispatcher(unseeing{crowded{fixture.Whole(s.server.store)}}, dispatcher.Config{Batch: 2, MaxQueued: 2, NewUID: func() string {
				drawn++
				return p.draw(func() string { return uid() + strconv.Itoa(drawn) })
			}})
		case 'p':
			role, err = newPoller(fixture.Whole(s.server.store), poller.Config{Owner: at.owners[process], Batch: 3})
		default:
			role = &plainWorker{s.server}
		}
		if err != nil {
			panic(err) // a configuration of this file
		}
		_ = role.round(ctx)
	}
}

// plainWorker pops one attempt and succeeds.
type plainWorker struct{ server *server }

func (w *plainWorker) round(ctx context.Context) error {
	entries, err := w.server.write.LPopCount(ctx, w.server.store.Keys.Input, 1).Result()
	if err != nil {
		return err
	}
	message := fmt.Sprintf(`{"type":"success","big_table_uid":%q,"refresh_attempt_uid":%q}`, modelOf(entries[0]), attemptOf(entries[0]))
	return w.server.write.RPush(ctx, w.server.store.Keys.Output, message).Err()
}

func (*plainWorker) resign(context.Context) {}

func (s *scope) account(to *ground, c *call, failed error) error {
	d := &deed{now: to.now, moment: moment{clock: minutes(to.now)}, before: to.redis, sent: sent(c.commands), work: true, schedules: s.schedules, policies: s.policies, maxQueued: 2}
	d.pops = c.commands[0].Name() == "lpop"
	if failed == nil {
		d.read(s.server.store.Keys, c.commands[0])
	}
	d.after = s.server.look(scopeUIDs, to.pollers, nil)
	to.redis, to.oracle = d.after, to.oracle.clone()
	err := to.oracle.account(d)
	d.after.forget()
	return err
}

// minutes are all that the clock has shown.
func minutes(now time.Time) (clock []time.Time) {
	for at := start; !at.After(now); at = at.Add(time.Minute) {
		clock = append(clock, at)
	}
	return clock
}

// forget drops what no decision depends on.
func (s *snapshot) forget() {
	s.wake, s.stats, s.histories = 0, map[string]string{"start": s.stats["start"]}, map[string][]string{}
	s.journal, s.outbox, s.rejected = nil, nil, nil
}

func (s *scope) restore(p *place) {
	m, k, r := s.server.mini, s.server.store.Keys, p.redis
	m.FlushAll()
	m.SetTime(p.now)
	for uid, hash := range r.models {
		setHash(s.server, k.Model(uid), hash)
	}
	for uid, payload := range r.payloads {
		_ = m.Set(k.Payload(uid), payload)
	}
	setHash(s.server, k.Policies, r.policies)
	setHash(s.server, k.Stats, map[string]string{"start": cmp.Or(r.stats["start"], "0")}) // the tickets that were drawn
	setHash(s.server, k.PolicyUses, r.uses)
	setHash(s.server, k.Heard, r.heard)
	for key, set := range map[string]map[string]float64{k.Failing: r.failing, k.Disabled: r.disabled, k.Errors: r.errors, k.Due: r.due, k.Urgent: r.urgent, k.Running: r.running, k.Pollers: r.pollers} {
		for member, score := range set {
			_, _ = m.ZAdd(key, score, member)
		}
	}
	lists := map[string][]string{k.Input: r.input, k.Output: r.output, k.Control: r.control}
	for owner, entries := range r.numbered {
		lists[k.Claimed(owner)] = entries
	}
	if r.leader != "" {
		_ = m.Set(k.Leader, r.leader)
	}
	for key, entries := range lists {
		if len(entries) > 0 {
			_, _ = m.Push(key, entries...)
		}
	}
}

func setHash(r *server, key string, hash map[string]string) {
	for name, value := range hash {
		r.mini.HSet(key, name, value)
	}
}

func (o *oracle) clone() *oracle {
	c := *o
	c.attempts, c.newest, c.meddled = make(map[string]*attempt, len(o.attempts)), maps.Clone(o.newest), maps.Clone(o.meddled)
	c.commandQueue, c.known, c.stated = maps.Clone(o.commandQueue), o.known.clone(), maps.Clone(o.stated)
	c.unheard = maps.Clone(o.unheard)
	for uid, facts := range o.attempts {
		copied := *facts
		c.attempts[uid] = &copied
	}
	return &c
}

func (g *ground) seal() {
	h := fnv.New128a()
	r := g.redis
	_, _ = fmt.Fprint(h, g.oracle.commandQueue, g.oracle.unheard, g.now.Unix(), g.pollers, r.models, r.payloads, r.due, r.urgent, r.running, r.pollers, r.numbered, r.leader, r.heard)
	_, _ = fmt.Fprintf(h, "%q%q%q", r.input, r.output, r.control)
	for _, uid := range slices.Sorted(maps.Keys(g.oracle.attempts)) {
		_, _ = fmt.Fprint(h, uid, *g.oracle.attempts[uid])
	}
	g.sum = [16]byte(h.Sum(nil))
}

// digest names a place: two places with the same digest have the same future. The two workers are alike.
func (p *place) digest() [16]byte {
	h := fnv.New128a()
	_, _ = h.Write(p.sum[:])
	sums := make([]uint64, len(p.tapes))
	for i, t := range p.tapes {
		sums[i] = t.sum
	}
	slices.Sort(sums[4:])
	for _, sum := range append(sums, uint64(p.crashes), uint64(p.ticks)) {
		_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, sum))
	}
	for _, owner := range p.owners[2:4] {
		_, _ = h.Write([]byte(owner))
	}
	return [16]byte(h.Sum(nil))
}
