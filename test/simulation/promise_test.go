package simulation

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/refreshd/refreshd/model"
)

// promise is what somebody may rely on about one model. It is noted from what was said alone, and nothing of it is read from Redis.
type promise struct {
	floor   time.Time // a worker has asked that nothing starts by itself before
	stopped bool      // a hand has disabled the model
}

// keep checks that a decision breaks no promise, and notes what it promises.
func (p *replay) keep(uid string, m *model.Model, decision model.Decision, at time.Time) {
	promised := p.promises[uid]
	p.timely(m, decision, promised.floor, at)
	switch decision.Event {
	case model.EventStart:
		failIf(promised.stopped, "a hand has stopped the model, and nobody has enabled it")
		failIf(at.Before(promised.floor) && !m.Trigger.ByHand(),
			"its worker has asked that nothing starts before %s", model.FormatTime(promised.floor))
		promised.floor = time.Time{}
	case model.EventDisable:
		promised = promise{stopped: true}
	case model.EventEnable, model.EventRun, model.EventRemove:
		promised = promise{}
	case model.EventSuccess, model.EventTimeout, model.EventFailure, model.EventPostponed, model.EventInterrupted:
		p.judged(m)
		if decision.Event != model.EventSuccess && decision.Event != model.EventTimeout {
			promised.floor = p.asked(at)
		}
	}
	saved := decision.Event == model.EventUpdate && decision.Next.RefreshAt.Equal(at) // and started by that
	if decision.Next.Disabled || decision.Next.Urgent() || saved {
		promised.floor = time.Time{}
	}
	p.promises[uid] = promised
}

// asked is the earliest start that the message of a worker asks for; zero: it does not.
func (p *replay) asked(at time.Time) time.Time {
	switch {
	case p.message == nil || p.message.RetryAfter == 0 && p.message.RetryAt.IsZero():
		return time.Time{}
	case p.message.RetryAt.IsZero():
		return at.Add(p.message.RetryAfter)
	default:
		return p.message.RetryAt
	}
}

// judged checks that an attempt counts for a model only if it worked on what the model is.
func (p *replay) judged(m *model.Model) {
	facts := p.oracle.attempts[m.AttemptUID]
	if facts == nil {
		return
	}
	var worked map[string]any
	_ = json.Unmarshal([]byte(facts.entry), &worked)
	for _, ours := range []string{"big_table_uid", "refresh_attempt_uid", "attempt_no", "deadline_at", "planned_at"} {
		delete(worked, ours)
	}
	payload, _ := json.Marshal(worked)
	failIf(string(payload) != m.Payload, "the attempt has worked on %s, the model is %s", payload, m.Payload)
}

// checkStopped checks that what a hand has stopped stays so, and says who it was.
func (p *replay) checkStopped() {
	for uid, promised := range p.promises {
		if hash := p.after.models[uid]; promised.stopped && (hash["refresh_disabled_until_update"] != "1" || hash["refresh_disabled_by"] != "hand") {
			fail("%s was stopped by a hand, and nobody has enabled it: %v", uid, hash)
		}
	}
}

// sight is what was there when a dispatcher looked.
type sight struct {
	*snapshot
	now     time.Time
	meddled bool // somebody else had written into a set
}

// due lists the models that are due since a while, so that any dispatcher has seen them: those that somebody wants at once, and the others.
func (s *sight) due() (urgent, others []string) {
	for _, uid := range slices.Sorted(maps.Keys(s.models)) {
		m := parse(uid, s.models[uid], "")
		switch {
		case !m.Due(s.now.Add(-turnOf * 10)):
		case m.Trigger.ByHand():
			urgent = append(urgent, uid)
		default:
			others = append(others, uid)
		}
	}
	return urgent, others
}

// count is how many models are due.
func (s *sight) count() (n int) {
	for uid, hash := range s.models {
		if parse(uid, hash, "").Due(s.now) {
			n++
		}
	}
	return n
}

// checkRoom checks how a dispatcher has shared the room in the input list: what is urgent starts first, and gets half of the room at least,
// and no more while others are due too.
func (p *replay) checkRoom() {
	if p.saw == nil || len(p.started) == 0 || p.saw.meddled {
		return
	}
	hurried, calm := 0, 0
	for _, entry := range p.started {
		switch _, urgent := p.saw.urgent[modelOf(entry)]; { // it may have become so since
		case !urgent:
			calm++
		case calm > 0:
			fail("what is urgent was not started first: %q", p.started)
		default:
			hurried++
		}
	}
	urgent, others := p.saw.due()
	if len(p.oracle.meddled) > 0 || p.saw.count() > p.batch {
		return // it may have seen a part of this, or something else
	}
	room := max(0, p.window-len(p.saw.input))
	half := (room + 1) / 2
	most := max(half, room-len(others))
	failIf(hurried > most, "%d urgent models were started in a room of %d, while %v were due too", hurried, room, others)
	settled := 0
	for _, entry := range p.started { // a run goes before what has been urgent for longer
		if _, run := p.saw.urgent[modelOf(entry)]; run && !slices.Contains(urgent, modelOf(entry)) {
			settled++
		}
	}
	for _, uid := range urgent {
		m := p.model(uid) // a key may refuse it, as somebody else was faster: it stays as it is then
		keyed := m != nil && (m.CircuitKey() != "" || len(p.stops().LimitsOf(m, p.now)) > 0)
		if keyed || p.steps[uid] > 0 || p.before.models[uid]["rev"] != p.saw.models[uid]["rev"] {
			settled++
		}
	}
	failIf(calm > 0 && settled < min(len(urgent), room/2),
		"%d other models were started in a room of %d, and of the urgent %v only %d", calm, room, urgent, settled)
}
