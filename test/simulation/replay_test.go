package simulation

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/refreshd/refreshd/model/policy"

	"github.com/refreshd/refreshd/model"
)

// replay decides again what the journal says that a deed has decided, about the models as they really were.
type replay struct {
	*deed
	oracle       *oracle
	consumed     []string                // messages that no entry has answered for yet
	handled      []string                // all messages that are done with
	ids          named                   // those of them with ids
	passed       int                     // commands that an answered one came after: they changed nothing
	left         []model.Command         // orders that no entry has answered for yet
	models       map[string]*model.Model // those that an entry was about, as they must be now; nil: removed
	steps        map[string]int          // entries by model since it was read or created
	first        map[string]int64        // revisions of models that were created; of removed ones the least that a new one may have
	input        []string                // the input list as the entries before left it
	promises     map[string]promise      // as they left these
	message      *model.Message          // that the last entry answers; nil: it answers none
	started      []string                // entries that must have been pushed
	back         []string                // uids of attempts whose entries must have left the input list
	changed      [][2]string             // entries that must stand changed in their places, if they stood there
	newest       map[string]string       // model -> uid of the attempt started here last
	records      map[string][]record     // model -> what its history must have got, newest first
	replaced     map[string]bool         // models whose newest attempt of before must be gone from the history
	forgotten    map[string]bool         // models whose history must be gone
	wakes        bool                    // a sleeping dispatcher must have been woken
	queueCircuit model.QueueCircuit      // as it was when the models were read
	meant        string                  // the shared policy as it was when what commands name was read
	common       string                  // likewise the shared policy
	ends         []end                   // what the circuit of the queue counts
	ended        map[string]model.Event  // attempts that ended here
	notices      int
	steers       bool
	tried        map[string]effort    // as the entries before left these
	slots        map[string]time.Time // likewise
	states       map[string]circuit   // likewise
	told         []string             // what must be told of circuits
	frees        bool                 // an attempt has given keys back: models may wait for them
	begun        map[string]bool      // models of which an attempt was started here; false: which were removed
	granted      map[string]int       // entries by bulk

	choices []int // which of several messages each ambiguous entry answers
	widths  []int // of how many
}

// choose picks one of n candidates.
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

// read replays the whole journal and compares what follows from it with what stands in Redis.
func (p *replay) read() error {
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
		if err := p.enter(entry); err != nil {
			return fmt.Errorf("journal entry %v: %w", entry, err)
		}
	}
	for _, check := range []func() error{p.checkModels, p.checkInput, p.checkCounters, p.checkSettled, p.checkNotices, p.checkHistories, p.checkHeartbeats, p.checkWake, p.checkQueueCircuit, p.checkRoom, p.checkStopped, p.checkReplies, p.checkWalk, p.checkBulk, p.checkFront, p.checkSteered} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// commit enters into the oracle what was found to be right.
func (p *replay) commit() {
	p.oracle.ends, p.oracle.promises, p.oracle.ids = p.ends, p.promises, p.ids.known
	p.oracle.tried, p.oracle.slots, p.oracle.states = p.tried, p.slots, p.states
	p.oracle.noteWishes(p)
	p.noteRule()
	p.noteBulk()
	for uid, attemptUID := range p.newest {
		p.oracle.newest[uid] = attemptUID
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

// modelOf reads which model an entry of the input list is about.
func modelOf(entry string) string {
	var in work
	_ = json.Unmarshal([]byte(entry), &in)
	return in.UID
}

// enter replays one entry of the journal.
func (p *replay) enter(entry map[string]string) error {
	uid, event, at := entry["uid"], model.Event(entry["event"]), instant(entry["at"])
	if aboutQueueCircuit(entry) {
		p.notices++
		return nil
	}
	if aboutCircuit(entry) {
		return nil
	}
	if !slices.ContainsFunc(p.clock, at.Equal) {
		return fmt.Errorf("the clock has shown %v since the round began", p.clock)
	}
	m := p.model(uid)
	if event == "orphan" {
		if m != nil {
			return errors.New("the model exists")
		}
		return nil
	}
	delta := entry
	entry, p.message = completed(m, delta), nil
	decision, err := p.decide(uid, m, event, at, entry)
	if err != nil {
		return err
	}
	if decision.Event != event {
		return fmt.Errorf("the decision is %s", decision.Event)
	}
	if err := p.keep(uid, m, decision, at); err != nil {
		return err
	}
	if err := p.wait(m, decision, at); err != nil {
		return err
	}
	p.giveBack(m, decision, at)
	if err := p.book(uid, m, decision); err != nil {
		return err
	}
	if decision.Notice != policy.NoticeNone && !decision.Muted {
		p.notices++
	}
	if decision.Ended != nil {
		p.remember(uid, m, event, entry)
		p.count(event, at)
	}
	if err := p.follow(uid, m, decision, at); err != nil {
		return err
	}
	return rebuilds(m, p.models[uid], delta)
}

// completed is an entry with what it leaves as it was.
func completed(m *model.Model, entry map[string]string) map[string]string {
	entry = maps.Clone(entry)
	if m == nil {
		return entry
	}
	for name, value := range fields(m) {
		if _, changed := entry[name]; !changed {
			entry[name] = value
		}
	}
	return entry
}

// rebuilds checks that an entry holds what turns a model into what has become of it.
func rebuilds(before, after *model.Model, entry map[string]string) error {
	if after == nil {
		return nil
	}
	was, is := map[string]string{}, fields(after)
	if before != nil {
		was = fields(before)
	}
	for name := range is {
		was[name] = cmp.Or(was[name], "") // each name once
	}
	for name, value := range was {
		again := name == "error" && contains(entry, name) && entry[name] == is[name] // each failure tells by what
		if name != "refresh_why" && !again && (entry[name] != is[name] || !contains(entry, name)) == (value != is[name]) {
			return fmt.Errorf("%s was %q and is %q", name, value, is[name])
		}
	}
	if entry["refresh_why"] != is["refresh_why"] {
		return fmt.Errorf("refresh_why is %q", is["refresh_why"])
	}
	return nil
}

func contains(entry map[string]string, name string) bool { _, found := entry[name]; return found }

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
	p.models[uid] = m
	return m
}

// policy reads a stored policy.
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

// compiled reads the text of a policy.
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

// book notes what the decision does to attempts.
func (p *replay) book(uid string, m *model.Model, decision model.Decision) error {
	if decision.Event == model.EventStart {
		return p.bookStart(uid, decision)
	}
	if decision.Event == model.EventUpdate && decision.Message != "" {
		p.changed = append(p.changed, [2]string{m.Entry(), decision.Message})
		if at := slices.Index(p.input, m.Entry()); at >= 0 {
			p.input[at] = decision.Message
		}
	}
	if m == nil || !m.Running() || decision.Event != model.EventRemove && decision.Next.AttemptUID == m.AttemptUID {
		return nil
	}
	facts := p.oracle.attempts[m.AttemptUID]
	switch {
	case facts == nil || facts.model != uid:
		return fmt.Errorf("the attempt %s was never started", m.AttemptUID)
	case facts.ended != "" || p.ended[m.AttemptUID] != "":
		return fmt.Errorf("the attempt %s has ended before with %s%s", m.AttemptUID, facts.ended, p.ended[m.AttemptUID])
	}
	p.ended[m.AttemptUID] = decision.Event
	if takesBack[decision.Event] && !facts.handed {
		p.back = append(p.back, m.AttemptUID)
	}
	return nil
}

// takesBack are the events that remove a queued attempt from the input list.
var takesBack = map[model.Event]bool{model.EventWithdrawn: true, model.EventRun: true, model.EventDisable: true, model.EventRemove: true}

func (p *replay) bookStart(uid string, decision model.Decision) error {
	attemptUID := decision.Next.AttemptUID
	if p.oracle.attempts[attemptUID] != nil {
		return fmt.Errorf("the attempt %s was started before", attemptUID)
	}
	if waiting := len(p.standing()) + len(p.started); p.maxQueued > 0 && waiting >= p.maxQueued {
		return fmt.Errorf("%d attempts wait already", waiting)
	}
	p.newest[uid], p.begun[uid] = attemptUID, true
	p.started = append(p.started, decision.Message)
	return nil
}

// follow moves the model on to the state that follows.
func (p *replay) follow(uid string, m *model.Model, decision model.Decision, at time.Time) error {
	if decision.Event == model.EventRemove {
		if m == nil {
			return errors.New("the model does not exist")
		}
		p.first[uid] = p.rev(uid) + 1
		p.begun[uid] = false
		p.models[uid], p.steps[uid] = nil, 0
		p.records[uid], p.forgotten[uid] = nil, true
		p.replaced[uid] = false
		return nil
	}
	p.steps[uid]++
	p.wakes = p.wakes || decision.Event != model.EventStart && soon(&decision.Next, at)
	if decision.Event == model.EventCreate {
		p.first[uid], p.steps[uid] = max(at.UnixMilli(), p.first[uid]), 0
	}
	next := m
	if decision.Definition != nil {
		next = decision.Definition
	}
	moved := *next
	moved.State = decision.Next
	p.models[uid] = &moved
	return nil
}
