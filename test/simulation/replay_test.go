package simulation

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// replay decides again what the journal says that a deed has decided, about the models as they really were.
type replay struct {
	*deed
	known        // as the entries before left it
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
	ended        map[string]model.Event  // attempts that ended here
	notices      int
	told         []string            // what must be told of circuits
	frees        bool                // an attempt has given keys back: models may wait for them
	begun        map[string]bool     // models of which an attempt was started here; false: which were removed
	granted      map[string]int      // entries by bulk
	owners       []string            // what owners must be told of them
	again        int                 // models that are fresh again
	failing      map[string]float64  // by the id of a fingerprint; nil: as before
	failures     map[string]int      // likewise: that were told
	luggage      *luggage            // what the last entry has imported
	arrived      map[string][]string // histories that were imported
	recovered    map[string]bool     // signatures by which none was failing for a moment

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
		p.checkFront, p.checkSteered, p.checkAges, p.checkCauses, p.checkLateResults,
	} {
		check()
	}
}

// commit enters into the oracle what was found to be right.
func (p *replay) commit() {
	p.oracle.known, p.oracle.ids = p.known, p.ids.known
	p.oracle.noteWishes(p)
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
	if p.believed != nil {
		p.believed(m)
	}
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
