package simulation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// oracle knows what must be true of a queue beyond its present state.
type oracle struct {
	attempts     map[string]*attempt // every attempt that was ever started, by its uid
	newest       map[string]string   // model -> uid of the attempt started last
	stated       map[string]int      // model -> in which step its status changed last: that is no transition, and may come between a read and a commit
	meddled      map[string]bool     // models whose scores somebody wrote by hand: wrong until a dispatcher looks
	commandQueue commandQueue        // commands that are still to be handled
	pushed       int                 // messages that reached Redis
	handled      int                 // messages that are done with
	ids          map[string]span     // of commands: when they were handled last
	steers       bool                // operators steer: what they name is read
	wishes       map[string]wish     // bulks, by their ids
	unheard      map[string][]push   // messages of workers that are not handled yet, oldest first
	handovers    int                 // starts that pollers have committed, in places that ends gave back
	known
	waiting map[string]bool // models that nothing has happened to since the shared policy changed: a walk must look at them
}

// known comes from the journal alone.
type known struct {
	ends     []end                  // what the circuit of the queue counts
	promises map[string]promise     // model -> what its worker or a hand was promised
	tried    map[string]effort      // model -> since when it tries to succeed
	slots    map[string]model.Slots // of keys
	opens    map[string]time.Time   // key -> before that no start may be, by what was promised
	states   map[string]circuit     // key -> its circuit
	ages     map[string]age         // model -> how old it may become
	fences   map[string]int64       // model -> the last fence
	pasts    map[string][]ending    // model -> the attempts that ended last, newest first
	held     map[string]bool        // models whose last success is doubted
	usual    map[string]float64     // model -> the rows that were usual when its last good result came
}

func (k known) clone() known {
	return known{slices.Clone(k.ends), maps.Clone(k.promises), maps.Clone(k.tried), maps.Clone(k.slots), maps.Clone(k.opens), maps.Clone(k.states), maps.Clone(k.ages), maps.Clone(k.fences), maps.Clone(k.pasts), maps.Clone(k.held), maps.Clone(k.usual)}
}

func newOracle() *oracle {
	return &oracle{
		attempts: map[string]*attempt{}, newest: map[string]string{}, stated: map[string]int{}, meddled: map[string]bool{}, commandQueue: commandQueue{}, ids: map[string]span{}, wishes: map[string]wish{}, unheard: map[string][]push{},
		known: known{nil, map[string]promise{}, map[string]effort{}, map[string]model.Slots{}, map[string]time.Time{}, map[string]circuit{}, map[string]age{}, map[string]int64{}, map[string][]ending{}, map[string]bool{}, map[string]float64{}},
	}
}

// account checks the effects of a deed and enters them. An error is a broken promise.
func (o *oracle) account(d *deed) error {
	return flawOf(func() {
		consumed := d.consumed()
		o.hear(d)
		defer o.forget(consumed)
		o.commandQueue.push(d.sent)
		consumed = o.commandQueue.pop(consumed)
		p := o.replay(d, consumed)
		o.pushed, o.handled = o.pushed+len(d.sent), o.handled+len(consumed)
		p.leave()
		p.commit()
		o.checkWishes(d.before, d.after)
		o.checkStanding(d.after)
	})
}

// replay finds a reading of the journal under which everything is right. When messages of one batch are so alike that an entry may
// answer either, it tries both; the error comes from the first reading.
func (o *oracle) replay(d *deed, consumed []string) (p *replay) {
	var first error
	for choices := []int{}; choices != nil; choices = p.nextChoices() {
		rest, ids := o.sortOut(d, consumed)
		p = &replay{
			deed: d, oracle: o, consumed: rest, ids: ids, handled: consumed, choices: choices, models: map[string]*model.Model{}, steps: map[string]int{},
			first: map[string]int64{}, ended: map[string]model.Event{}, newest: map[string]string{}, records: map[string][]record{}, replaced: map[string]bool{}, forgotten: map[string]bool{},
			input: slices.Clone(d.before.input), known: o.known.clone(), begun: map[string]bool{}, granted: map[string]int{}, failures: map[string]int{}, recovered: map[string]bool{}, freed: map[string]int{}, arrived: map[string][]string{},
		}
		if d.orders != nil {
			p.left = slices.Clone(*d.orders)
		}
		err := flawOf(p.read)
		if err == nil {
			return p
		}
		first = cmp.Or(first, err)
	}
	must(first)
	return p
}

func (o *oracle) checkStanding(s *snapshot) {
	for owner := range s.claimed {
		if _, known := s.pollers[owner]; !known && owner != store.CommandOwner { // anybody may take a command queue without a leader
			fail("%d messages are claimed by %s, which nobody will miss", len(s.claimed[owner]), owner)
		}
	}
	o.checkEntries(s)
	checkPolicies(s)
	s.checkIndexes(o.steers)
	o.checkScores(s)
}

// checkPolicies checks that each policy that a model uses is stored, and that it is noted when a model was saved with an inline one.
func checkPolicies(s *snapshot) {
	for uid, hash := range s.models {
		name := hash["policy"]
		failIf(name != "" && s.policies[name] == "", "%s uses the policy %s, which is not stored", uid, name)
	}
	for name := range s.policies {
		failIf(policy.IsInline(name) && !strings.HasPrefix(s.uses[name], "? "),
			"when a model was saved with the policy %s is noted as %q", name, s.uses[name])
	}
}

// checkEntries checks the input list and the lists of worker pools.
func (o *oracle) checkEntries(s *snapshot) {
	for pool := range s.taken {
		_, known := s.workers[pool]
		failIf(!known, "%d attempts are taken by %s, which nobody will miss", len(s.taken[pool]), pool)
	}
	seen := map[string]bool{}
	for i, entry := range s.entries() {
		uid := attemptOf(entry)
		facts := o.attempts[uid]
		switch {
		case facts == nil:
			fail("there is an attempt that was never started: %s", entry)
		case seen[uid]:
			fail("there is an attempt twice: %s", entry)
		case facts.gone:
			fail("there is an attempt again that was done with: %s", entry)
		case i < len(s.input) && !facts.handed && s.models[facts.model]["attempt_uid"] != uid:
			fail("the input list holds an attempt that has ended with %s: %s", facts.ended, entry)
		}
		seen[uid] = true
	}
}

// checkScores checks that due, urgent and running say what the hashes say.
func (o *oracle) checkScores(s *snapshot) {
	uids := map[string]bool{}
	for _, set := range []map[string]float64{s.due, s.urgent, s.running} {
		for uid := range set {
			uids[uid] = true
		}
	}
	for uid := range s.models {
		uids[uid] = true
	}
	for uid := range o.meddled {
		uids[uid] = true
	}
	for _, uid := range slices.Sorted(maps.Keys(uids)) {
		want := scoresOf(uid, s.models[uid])
		got := scores{score(s.due, uid), score(s.urgent, uid), score(s.running, uid)}
		right := got == want
		if right {
			delete(o.meddled, uid)
		}
		failIf(!right && !o.meddled[uid], "%s stands in the sets at %+v, want %+v: %v", uid, got, want, s.models[uid])
	}
}

// scores are the scores of a model in the three sets; empty: it is not a member.
type scores struct{ due, urgent, running string }

// scoresOf derives the scores of a model from its hash. An idle model that waits is in one of due and urgent, never in both.
func scoresOf(uid string, hash map[string]string) scores {
	m := parse(uid, hash, "")
	at := digits(int(m.RefreshAt.UnixMilli()))
	switch {
	case (m.AttemptUID == "") != m.DeadlineAt.IsZero(), (m.AttemptUID == "") != m.StartedAt.IsZero():
		fail("%s has half an attempt: %v", uid, hash)
	case m.Disabled && (m.AttemptUID != "" || !m.RefreshAt.IsZero()):
		fail("%s is disabled and has something to do: %v", uid, hash)
	case m.AttemptUID != "":
		return scores{running: digits(int(expires(hash).UnixMilli()))}
	case m.RefreshAt.IsZero(), hash["parked_by"] != "": // it is among the parked
	case hash["refresh_for"] == "hand", hash["refresh_for"] == "change":
		return scores{urgent: at}
	case hash["refresh_for"] == "run":
		return scores{urgent: digits(int(m.RefreshAt.AddDate(0, 0, -36500).UnixMilli()))}
	default:
		return scores{due: at}
	}
	return scores{}
}

func score(set map[string]float64, uid string) string {
	if at, found := set[uid]; found {
		return strconv.FormatInt(int64(at), 10)
	}
	return ""
}

// checkQuiet checks the promises for a time when there is nothing left to do.
func (o *oracle) checkQuiet(s *snapshot) {
	if left := s.messages(); len(left) > 0 || o.pushed != o.handled {
		fail("%d messages were sent and %d handled, left are %v", o.pushed, o.handled, left)
	}
	for _, uid := range slices.Sorted(maps.Keys(o.attempts)) {
		facts := o.attempts[uid]
		failIf(facts.ended == "", "attempt %s of %s never ended", uid, facts.model)
	}
	failIf(len(s.entries())+len(s.running)+len(o.meddled) > 0,
		"left are the attempts %v, running %v and scores written by hand %v", s.entries(), s.running, o.meddled)
	s.checkOver()
}

// flaw is a broken promise. It ends what looks for one.
type flaw struct{ error }

func fail(format string, args ...any) { panic(flaw{fmt.Errorf(format, args...)}) }

// failIf reports a broken promise when something is wrong.
func failIf(wrong bool, format string, args ...any) {
	if wrong {
		fail(format, args...)
	}
}

// must reports a failure that no fault was planted for.
func must(err error) {
	if err != nil {
		panic(flaw{err})
	}
}

// only is the error of a call that returns something else too.
func only[T any](_ T, err error) error { return err }

// flawOf is the first broken promise that a look finds; nil: none is.
func flawOf(look func()) (broken error) {
	defer func() {
		switch found := recover().(type) {
		case nil:
		case flaw:
			broken = found.error
		default:
			panic(found)
		}
	}()
	look()
	return nil
}
