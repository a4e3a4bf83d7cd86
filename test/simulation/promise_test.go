package simulation

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// promise is a promise about one model. It is noted from messages alone, and nothing of it is read from Redis.
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
	for _, ours := range []string{"big_table_uid", "refresh_attempt_uid", "attempt_no", "deadline_at", "planned_at", "fence", "due_at", "for"} {
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

type sight struct {
	*snapshot
	now     time.Time
	meddled bool // somebody else had written into a set
	step    int
	outage  outage // the last one before
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

func (s *sight) count() (n int) {
	for uid, hash := range s.models {
		if parse(uid, hash, "").Due(s.now) {
			n++
		}
	}
	return n
}

// checkRoom checks how a dispatcher has shared the room in the input list: urgent models start first, and get half of the room at least,
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

// ageing makes a policy promise that its models do not grow old, or nothing.
func ageing(rng *rand.Rand, text string) string {
	promises := []string{`"fresh_within":"2m","warn_within":"20s",`, `"fresh_within":"150s","warn_within":"40s",`, `"fresh_within":"40s","warn_within":"15s",`, ``, `"fresh_within":"30s","notify":["disabled","recovered","fresh"],`}
	return strings.Replace(text, `"policy":{`, `"policy":{`+promises[rng.IntN(len(promises))], 1)
}

// age is the promised age of a model, and the reported one. It is noted from the journal alone.
type age struct {
	within, warn time.Duration // 0: nothing is promised
	success      time.Time     // the last one
	watched      time.Time     // since when something is promised of a model that never succeeded
	told         model.Freshness
}

// since is the start of the age.
func (a age) since() time.Time {
	if a.success.IsZero() {
		return a.watched
	}
	return a.success
}

// is what the model is at an instant.
func (a age) is(at time.Time) model.Freshness {
	switch old := at.Sub(a.since()); {
	case a.within == 0:
		return ""
	case old >= a.within:
		return model.FreshnessStale
	case a.warn > 0 && old >= a.warn:
		return model.FreshnessLate
	case a.success.IsZero():
		return model.FreshnessNever
	default:
		return model.Fresh
	}
}

var badness = map[model.Freshness]int{"": 0, model.Fresh: 0, model.FreshnessNever: 0, model.FreshnessLate: 1, model.FreshnessStale: 2}

// growOld asks for a model whose age is to be reported.
func (p *replay) growOld(m *model.Model, at time.Time) model.Decision {
	failIf(m == nil || m.Scores().StaleAt.IsZero() || m.Scores().StaleAt.After(at), "nothing is to be told of its age")
	return m.ChangeFreshness(at)
}

// grow checks the age of a model in an entry, and notes it. A decline is reported at once, and once; an improvement by a success, or
// when somebody has promised something else.
func (p *replay) grow(uid string, event model.Event, at time.Time) {
	m := p.models[uid]
	if m == nil {
		delete(p.ages, uid)
		return
	}
	was := p.ages[uid]
	before := was.told
	if badness[was.told] > 0 && badness[m.Freshness] == 0 && m.Freshness != "" {
		p.again++
	}
	is := age{m.Policy.FreshWithin, m.Policy.WarnWithin, was.success, was.watched, m.Freshness}
	switch event {
	case model.EventCreate:
		is.success, is.watched, was = time.Time{}, time.Time{}, age{}
	case model.EventImport:
		is.success, is.watched, was = m.LastSuccessAt, m.FreshSince, age{}
	case model.EventSuccess:
		if is.success = at; p.message == nil { // somebody has accepted it: it counts from when it ended
			is.success = p.pasts[uid][0].EndedAt
		}
	}
	if is.within == 0 || !is.success.IsZero() {
		is.watched = time.Time{}
	} else if is.watched.IsZero() {
		is.watched = at
	}
	p.ages[uid] = is
	if event == model.EventImport { // the decline was reported elsewhere
		if badness[is.told] == 0 && is.told != "" {
			p.tellOwner(uid, before, is.told)
		}
		return
	}
	p.checkTold(uid, event, was, is, at)
}

// checkTold checks one step of the reported age of a model.
func (p *replay) checkTold(uid string, event model.Event, was, is age, at time.Time) {
	worse := map[model.Event]model.Freshness{model.EventBecameLate: model.FreshnessLate, model.EventBecameStale: model.FreshnessStale}[event]
	promised := is.within != was.within || is.warn != was.warn
	switch {
	case (is.told == "") != (is.within == 0):
		fail("%s is told %q, promised is %s", uid, is.told, is.within)
	case worse != "" && (is.told != worse || is.is(at) != worse || badness[was.told] >= badness[worse]):
		fail("%s is told %q after %q; it is %q since its last success at %s", uid, is.told, was.told, is.is(at), is.since())
	case worse == "" && badness[is.told] > badness[was.told]:
		fail("%s is told %q after %q by %s", uid, is.told, was.told, event)
	case badness[is.told] < badness[was.told] && event != model.EventSuccess && !promised && !p.setBack:
		fail("%s is told %q after %q without a success, by %s", uid, is.told, was.told, event)
	case badness[is.told] == 0 && is.within > 0 && (is.told == model.FreshnessNever) != is.success.IsZero():
		fail("%s is told %q, its last success was at %s", uid, is.told, is.success)
	case event == model.EventSuccess && is.within > 0 && is.told != model.Fresh && p.message != nil:
		fail("%s has succeeded, and is told %q", uid, is.told)
	}
	p.tellOwner(uid, was.told, is.told)
}

// tellOwner notes the notice that the owner of a model must get.
func (p *replay) tellOwner(uid string, was, is model.Freshness) {
	notice := policy.NoticeFresh
	switch m := p.models[uid]; {
	case is == model.FreshnessStale && was != is:
		notice = policy.NoticeStale
		fallthrough
	case was == model.FreshnessStale && badness[is] == 0 && is != "":
		if m.Policy.Notifies(notice) {
			p.owners = append(p.owners, string(notice)+" "+uid)
		}
	}
}

// checkAges checks that the owners were notified of each change once, and that it was counted once.
func (p *replay) checkAges() {
	var told []string
	for _, entry := range p.after.outbox {
		if notice := policy.Notice(entry["event"]); notice == policy.NoticeStale || notice == policy.NoticeFresh {
			told = append(told, entry["event"]+" "+entry["uid"])
		}
	}
	failIf(!slices.Equal(told, p.owners), "the owners were told %q, want %q", told, p.owners)
	counted := p.after.grown(p.before, model.CounterFreshAgain)
	failIf(counted != p.again, "%d models are counted as fresh again, want %d", counted, p.again)
}

// checkAged checks that the age of each model was reported, whatever it does.
func (o *oracle) checkAged(s *snapshot, now time.Time) {
	for uid, a := range o.ages {
		is := a.is(now)
		failIf(badness[is] > badness[a.told], "%s is %s since %s, and nobody was told: %v", uid, is, a.since(), s.models[uid])
	}
}

// growOld enters a model into the indexes of its age.
func (s *steered) growOld(m *model.Model) {
	at := float64(m.StaleAt.UnixMilli())
	switch m.Freshness {
	case model.Fresh:
		s.ages[m.UID] = at
	case model.FreshnessLate:
		s.ages[m.UID], s.late[m.UID] = at, at
	case model.FreshnessNever:
		s.ages[m.UID], s.late[m.UID] = at, float64(model.Never.UnixMilli())
	case model.FreshnessStale:
		s.stale[m.UID] = at
	}
}
