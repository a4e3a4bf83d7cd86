package simulation

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

// replay decides again what the journal says that a deed has decided, about the models as they really were.
type replay struct {
	*deed
	known        // as the entries before left it
	oracle       *oracle
	consumed     []string                // messages that no entry has answered for yet
	handled      []string                // all messages that are done with
	ids          named                   // those with ids
	passed       int                     // commands that an answered one came after: they changed nothing
	left         []model.Command         // orders that no entry has answered for yet
	models       map[string]*model.Model // those that an entry was about, as they must be now; nil: removed
	steps        map[string]int          // entries by model since it was read or created
	first        map[string]int64        // revisions of models that were created; of removed ones the least that a new one may have
	input        []string                // the input list as the entries before left it
	message      *model.Message          // that the last entry answers; nil: it answers none
	started      []string                // entries that must have been pushed
	back         []string                // uids of attempts whose entries must have left the input list
	changed      [][2]string             // entries that must be changed in their places, if they were there
	newest       map[string]string       // model -> uid of the attempt started here last
	records      map[string][]record     // model -> what its history must have got, newest first
	replaced     map[string]bool         // models whose newest attempt of before must be gone from the history
	forgotten    map[string]bool         // models whose history must be gone
	wakes        bool                    // a sleeping dispatcher must have been woken
	queueCircuit model.QueueCircuit      // as it was when the models were read
	meant        string                  // the shared policy as it was when what commands name was read
	common       string                  // likewise the shared policy
	ended        map[string]model.Event  // attempts that ended here
	notices      int
	told         []string            // due entries about circuits
	frees        bool                // an attempt has given keys back: models may wait for them
	freed        map[string]int      // places that keys have got back, and no start has taken
	freedAt      time.Time           // when
	handed       int                 // starts in such places
	begun        map[string]bool     // models with an attempt that was started here; false: which were removed
	granted      map[string]int      // entries by bulk
	owners       []string            // due notices to owners
	again        int                 // models that are fresh again
	failing      map[string]float64  // by the id of a fingerprint; nil: as before
	failures     map[string]int      // likewise: the reported ones
	luggage      *luggage            // what the last entry has imported
	arrived      map[string][]string // histories that were imported
	recovered    map[string]bool     // fingerprints that no model had for a moment

	choices []int // which of several messages each ambiguous entry answers
	widths  []int // of how many
}

func (p *replay) choose(n int) int {
	at := len(p.widths)
	if at == len(p.choices) {
		p.choices = append(p.choices, 0)
	}
	p.widths = append(p.widths, n)
	return p.choices[at]
}

// nextChoices is the reading to try next; nil: there is none left.
func (p *replay) nextChoices() []int {
	for at := len(p.widths) - 1; at >= 0; at-- {
		if p.choices[at]+1 < p.widths[at] {
			return append(slices.Clone(p.choices[:at]), p.choices[at]+1)
		}
	}
	return nil
}

// read replays the whole journal and compares the result with Redis.
func (p *replay) read() {
	if len(p.queueCircuits) > 0 {
		p.queueCircuit = queueCircuitOf(p.queueCircuits[p.choose(len(p.queueCircuits))])
	}
	p.common = p.before.policies[sharedPolicy]
	if len(p.shared) > 0 {
		p.common = p.shared[p.choose(len(p.shared))]
	}
	p.meant = p.common
	if len(p.shared) > 1 {
		p.meant = p.shared[p.choose(len(p.shared))]
	}
	for _, entry := range p.after.journal {
		err := flawOf(func() { p.enter(entry) })
		failIf(err != nil, "journal entry %v: %w", entry, err)
	}
	for _, check := range []func(){
		p.checkModels, p.checkInput, p.checkCounters, p.checkSettled, p.checkHistories, p.checkHeartbeats, p.checkCompared,
		p.checkWake, p.checkQueueCircuit, p.checkRoom, p.checkStopped, p.checkReplies, p.checkWalk,
		p.checkFront, p.checkSteered, p.checkPlaces, p.checkAges, p.checkFingerprints, p.checkLateResults,
	} {
		check()
	}
}

// commit enters into the oracle what was found to be right.
func (p *replay) commit() {
	p.oracle.known, p.oracle.ids = p.known, p.ids.known
	p.oracle.noteWishes(p)
	p.oracle.handovers += p.handed
	p.noteRule()
	for uid, attemptUID := range p.newest {
		p.oracle.newest[uid] = attemptUID
	}
	for uid, hash := range p.after.models {
		if hash["user_friendly_status"] != p.before.models[uid]["user_friendly_status"] {
			p.oracle.stated[uid] = p.step
		}
	}
	for i, message := range p.started {
		p.oracle.attempts[attemptOf(message)] = &attempt{model: modelOf(message), ticket: count(p.before.stats["start"]) + i + 1}
	}
	for attemptUID, event := range p.ended {
		p.oracle.attempts[attemptUID].ended, p.oracle.attempts[attemptUID].at = event, p.step
	}
	if p.orders != nil {
		*p.orders = p.left
	}
	left := map[string]bool{}
	for _, entry := range p.after.entries() {
		left[attemptOf(entry)] = true
	}
	for _, entry := range p.before.entries() {
		facts := p.oracle.attempts[attemptOf(entry)]
		facts.gone = facts.gone || !left[attemptOf(entry)]
		if !slices.Contains(p.before.input, entry) && slices.Contains(p.after.input, entry) {
			facts.handed, facts.since = true, p.step
		}
	}
	for _, entry := range p.after.entries() {
		p.oracle.attempts[attemptOf(entry)].entry = entry
	}
}

// model returns a model as the entries before this one left it; nil: there is none.
func (p *replay) model(uid string) *model.Model {
	if m, seen := p.models[uid]; seen {
		return m
	}
	hash, found := p.before.models[uid]
	if !found {
		return nil
	}
	m := parse(uid, hash, p.before.payloads[uid])
	m.QueueCircuit = p.queueCircuit
	_ = m.Resolve(p.policy(m.PolicyName), p.schedules.Get)
	for _, entry := range p.before.histories[uid] {
		attempt, err := model.ParseAttempt(entry)
		must(err)
		m.Past = append(m.Past, attempt)
	}
	if p.believed != nil {
		p.believed(m)
	}
	p.models[uid] = m
	return m
}

func (p *replay) policy(name string) policy.Policy {
	if name == "" {
		return policy.Default()
	}
	text := cmp.Or(p.before.policies[name], p.after.policies[name]) // the last model that used it may have left it here
	if name == sharedPolicy {
		text = p.common
	}
	return p.compiled(text)
}

func (p *replay) compiled(text string) policy.Policy {
	if policy, cached := p.policies[text]; cached {
		return policy
	}
	var value any
	_ = json.Unmarshal([]byte(text), &value)
	chosen, err := policy.Parse(value)
	if err != nil {
		chosen = policy.Default()
	}
	p.policies[text] = chosen
	return chosen
}

// deed is one executed command and what it may have done.
type deed struct {
	before, after *snapshot
	now           time.Time
	moment
	step      int
	note      *note            // what it is to note of the input list; nil: nothing
	setBack   bool             // the clock was set back before
	sent      []string         // messages that it pushed, with the mark of their source
	said      []string         // what it may have pushed to the output list
	leaves    bool             // a poller or a worker pool resigns
	found     string           // the heartbeat that showed a worker pool as expired, in Unix ms
	measured  time.Time        // the instant for which the circuit of the queue was measured; zero: it was not
	compared  *compared        // what was read of what operators set, before the deed changes it; nil: it does not
	turned    *turn            // what somebody does with the circuit of the queue; nil: nothing
	commits   string           // the poller that commits; empty: a dispatcher or an operator does
	alive     string           // a poller or a worker pool that gives a heartbeat
	looks     bool             // a dispatcher reads the due models
	pops      bool             // it pops attempts from the input list
	work      bool             // it may move attempts between the input list and the lists of worker pools
	few       bool             // few fingerprints are kept apart
	brought   *[]luggage       // models that it may import
	orders    *[]model.Command // commands that its caller may carry out without a message
	maxQueued int              // high-water mark of the input list
	window    int              // what it takes for that mark; a dispatcher may take a lower one
	batch     int              // how many models of a kind a dispatcher reads at once
	schedules *schedule.Cache
	policies  map[string]policy.Policy // by their text
	believed  func(*model.Model)       // what a planted bug says of models; nil: nothing
}

type moment struct {
	since         int                            // in which step
	clock         []time.Time                    // what the clock has shown since, in order
	queueCircuits []map[string]string            // what the circuit of the queue has been since, in order
	shared        []string                       // likewise the policy that several models share
	looks         []time.Time                    // when a dispatcher has looked since its process began
	saw           *sight                         // what was due when a dispatcher looked; nil: it has not
	fronts        [][]string                     // what was noted of the input list since, in order
	circuits      []map[string]map[string]string // what the circuits of keys have been since, in order
	line          *snapshot                      // when a poller has read which models wait for places; nil: it has not
	settings      *snapshot                      // when it has read holds, limits and calendars behind that
}

// consumed returns the messages that the deed has handled. No message may come from nowhere.
func (d *deed) consumed() (gone []string) {
	was, is := d.before.messages(), d.after.messages()
	for _, message := range d.sent {
		was[message]++
	}
	for _, message := range slices.Sorted(maps.Keys(is)) {
		if message[0] == 'o' && slices.Contains(d.said, message[1:]) {
			for ; is[message] > was[message]; was[message]++ {
				d.sent = append(d.sent, message)
			}
		}
		failIf(is[message] > was[message], "the message %s stands there %d times, want %d", message, is[message], was[message])
	}
	for _, message := range slices.Sorted(maps.Keys(was)) {
		for range was[message] - is[message] {
			gone = append(gone, message)
		}
	}
	return gone
}

// execute lets Redis carry out a call and checks what it did.
func (w *world) execute(a *actor, c *call) error {
	if a != nil {
		a.overhear(c, &w.server.store.Keys, w.before)
	}
	err := c.execute()
	if w.lines != nil {
		w.note("    %v", c.commands)
	}
	if !c.writes() {
		return err
	}
	d := &deed{now: w.now, moment: c.began, sent: sent(c.commands), work: true}
	if a != nil {
		d.moment = a.began
	}
	for _, command := range c.commands {
		d.pops = d.pops || command.Name() == "lpop"
		if err == nil {
			d.read(w.server.store.Keys, command)
		}
		if args := command.Args(); len(args) > 3 && args[3] == w.server.store.Keys.Output {
			d.said = texts(args[4:])
		}
	}
	if a == nil || a.role == w.operator { // a delayed request may be the operator's
		d.orders, d.brought = &w.operator.orders, &w.operator.brought
	}
	w.enter(d)
	if d.looks && w.temper.away {
		w.look()
	}
	if a != nil && d.looks {
		a.began.looks = append(slices.Clip(a.began.looks), d.now)
		a.began.saw = &sight{snapshot: d.after, now: d.now, meddled: len(w.oracle.meddled) > 0, step: w.steps, outage: w.outage}
	}
	return err
}

// enter reads the queue after a deed and enters it in the oracle.
func (w *world) enter(d *deed) {
	d.step = w.steps
	d.before, d.after = w.before, w.server.look(w.uids, w.owners, w.pools)
	if w.lines != nil {
		w.remember(*d.after)
	}
	d.schedules, d.policies, d.maxQueued, d.batch, d.setBack, d.few, d.believed = w.schedules, w.policies, w.temper.maxQueued, w.temper.batch, w.setBack, w.temper.few, w.believed
	w.before = d.after
	queueCircuit, shared := changed(d.before.queueCircuit, d.after.queueCircuit), changed(d.before.policies[sharedPolicy], d.after.policies[sharedPolicy])
	circuits, front := changed(d.before.circuits, d.after.circuits), changed(d.before.front, d.after.front)
	for _, a := range w.actors { // what its round may have read
		began := &a.began
		began.queueCircuits, began.shared = append(began.queueCircuits, queueCircuit...), append(began.shared, shared...)
		began.circuits, began.fronts = append(began.circuits, circuits...), append(began.fronts, front...)
	}
	if w.calm && d.changed() {
		w.writes++
	}
	if w.broken == nil {
		w.broken = w.oracle.account(d)
	}
	if w.before.wake > 0 && w.rng.IntN(2) == 0 {
		w.server.mini.Del(w.server.store.Keys.Wake) // a dispatcher heard of it
		w.before.wake = 0
	}
}

// changed is the state behind a deed, if it is another.
func changed[T any](before, after T) []T {
	if fmt.Sprint(before) == fmt.Sprint(after) {
		return nil
	}
	return []T{after}
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
