package simulation

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

func (p *replay) enter(entry map[string]string) {
	uid, event, at := entry["uid"], model.Event(entry["event"]), instant(entry["at"])
	if aboutQueueCircuit(entry) {
		p.notices++
		return
	}
	if aboutCircuit(entry) {
		return
	}
	failIf(!slices.ContainsFunc(p.clock, at.Equal), "the clock has shown %v since the round began", p.clock)
	m := p.model(uid)
	if event == "orphan" {
		failIf(m != nil, "the model exists")
		return
	}
	p.heard(m, entry["rev"], at)
	delta := withEnd(m, entry)
	entry, p.message = completed(m, delta), nil
	decision := p.decide(uid, m, event, at, entry)
	failIf(decision.Event != event, "the decision is %s", decision.Event)
	if decision.Event != model.EventRemove { // what it means for the age of its model
		cmp.Or(m, &model.Model{}).Watch(&decision, at)
	}
	p.sort(m, &decision)
	p.keep(uid, m, decision, at)
	p.judge(uid, m, decision, at)
	p.checkCancelled(m, decision)
	p.wait(m, decision, at)
	p.giveBack(m, decision, at)
	p.book(uid, m, decision)
	p.notices += len(decision.Notifications(uid, at))
	if decision.Ended != nil {
		p.remember(uid, m, &decision, entry)
		p.count(event, at)
	}
	rev := cmp.Or(delta["rev"], strconv.FormatInt(p.rev(uid)+1, 10)) // untold, it is one more
	p.follow(uid, m, decision, at)
	failIf(p.models[uid] != nil && rev != strconv.FormatInt(p.rev(uid), 10), "the revision is %d, a follower has %s", p.rev(uid), rev)
	p.grow(uid, event, at)
	if event == model.EventImport {
		p.arrive(uid)
	}
	rebuilds(m, p.models[uid], delta)
}

// ofAttempt are the fields that go with attempt_uid, untold.
var ofAttempt = []string{
	"started_at", "deadline_at", "entry_deadline_at", "entry_times", "taken_at", "processing_at", "worker", "again", "outdated", "traced", "guarded",
	"counted_by", "silent_after", "heard_at",
}

// withEnd is an entry with the fields that went with attempt_uid.
func withEnd(m *model.Model, entry map[string]string) map[string]string {
	if uid, changed := entry["attempt_uid"]; m == nil || !changed || uid != "" {
		return entry
	}
	entry, before := maps.Clone(entry), fields(m)
	for _, name := range ofAttempt {
		if before[name] != "" && !contains(entry, name) {
			entry[name] = ""
		}
	}
	return entry
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
func rebuilds(before, after *model.Model, entry map[string]string) {
	if after == nil {
		return
	}
	was, is := map[string]string{}, fields(after)
	if before != nil {
		was = fields(before)
	}
	for name := range is {
		was[name] = cmp.Or(was[name], "") // each name once
	}
	for name, value := range was {
		again := name == "error" && contains(entry, name) && entry[name] == is[name] // each failure names its fingerprint
		failIf(name != "refresh_why" && !again && (entry[name] != is[name] || !contains(entry, name)) == (value != is[name]),
			"%s was %q and is %q", name, value, is[name])
	}
	failIf(entry["refresh_why"] != is["refresh_why"], "refresh_why is %q", is["refresh_why"])
}

func contains(entry map[string]string, name string) bool { _, found := entry[name]; return found }

// follow moves the model on to the state that follows.
func (p *replay) follow(uid string, m *model.Model, decision model.Decision, at time.Time) {
	if decision.Event == model.EventRemove {
		failIf(m == nil, "the model does not exist")
		p.first[uid] = p.rev(uid) + 1
		p.begun[uid] = false
		p.models[uid], p.steps[uid] = nil, 0
		p.records[uid], p.forgotten[uid] = nil, true
		delete(p.pasts, uid)
		delete(p.usual, uid)
		p.replaced[uid] = false
		return
	}
	p.steps[uid]++
	p.wakes = p.wakes || decision.Event != model.EventStart && soon(&decision.Next, at)
	if decision.Event == model.EventCreate || decision.Event == model.EventImport && m == nil {
		p.first[uid], p.steps[uid] = max(at.UnixMilli(), p.first[uid]), 0
	}
	next := m
	if decision.Definition != nil {
		next = decision.Definition
	}
	moved := *next
	moved.State = decision.Next
	if decision.Definition != nil {
		moved.Host = pickedBy(next)
	}
	p.models[uid] = &moved
}

// pickedBy is the host that a selector knows a model by beside its labels.
func pickedBy(m *model.Model) string {
	var payload struct {
		Address string `json:"input_url"`
	}
	_ = json.Unmarshal([]byte(m.Payload), &payload)
	address, err := url.Parse(payload.Address)
	if m.Labels["host"] != "" || err != nil {
		return ""
	}
	return strings.ToLower(address.Hostname())
}

// decide asks package model; what the entry says of its occasion must be true.
func (p *replay) decide(uid string, m *model.Model, event model.Event, at time.Time, entry map[string]string) model.Decision {
	switch event {
	case model.EventSuccess, model.EventFailure:
		if m != nil && m.Held() { // somebody accepts or rejects it
			return p.answeredCommand(uid, m, event, at, entry)
		}
		if entry["error_type"] == "worker_died" && len(p.consumed) == 0 {
			return p.died(m, at)
		}
		return p.handle(m, event, at, entry)
	case model.EventWorkerDied:
		return p.died(m, at)
	case model.EventLate:
		return p.handle(m, event, at, entry)
	case model.EventStart, model.EventSkipped, model.EventGiveUp, model.EventLimited:
		return p.wake(m, event, at, entry)
	case model.EventParked:
		return p.park(m, at, entry)
	case model.EventReleased:
		return p.release(m, at)
	case model.EventReplan:
		return p.replan(m, at)
	case model.EventBecameLate, model.EventBecameStale, model.EventWatch:
		return p.growOld(m, at)
	case model.EventTaken:
		p.expire(m, at)
		return p.taken(m, at, entry)
	case model.EventTimeout, model.EventQueueTimeout:
		decision := p.expire(m, at)
		p.fair(m, at)
		return decision
	case model.EventWithdrawn:
		switch {
		case !passed(m, at):
			fail("no deadline has passed")
		case !p.queued(m.AttemptUID):
			fail("the attempt was taken by a worker")
		}
		p.spoken(m)
		return m.Withdraw(at)
	case model.EventCreate, model.EventUpdate, model.EventRun, model.EventEnable, model.EventDisable, model.EventRemove, model.EventCancel, model.EventAccept:
		return p.answeredCommand(uid, m, event, at, entry)
	case model.EventImport:
		return p.imported(uid, m, event, at, entry)
	case model.EventOutdated:
		if len(p.consumed) > 0 || m == nil {
			return p.handle(m, event, at, entry)
		}
		return p.expire(m, at)
	default:
		return p.handle(m, event, at, entry)
	}
}

// expire asks what follows a deadline of an attempt that a worker has taken.
func (p *replay) expire(m *model.Model, at time.Time) model.Decision {
	failIf(!passed(m, at), "no deadline has passed")
	p.spoken(m)
	facts := p.oracle.attempts[m.AttemptUID]
	handed := facts != nil && facts.handed
	failIf(p.queued(m.AttemptUID) && m.ProcessingAt.IsZero() && !handed, "the attempt was never taken")
	return m.Expire(at)
}

// passed reports whether a model has an attempt whose deadline has passed.
func passed(m *model.Model, at time.Time) bool {
	return m != nil && m.Running() && !expires(fields(m)).After(at)
}

// queued reports whether an attempt was in the input list.
func (p *replay) queued(attemptUID string) bool {
	return slices.ContainsFunc(p.before.input, func(entry string) bool { return attemptOf(entry) == attemptUID })
}

// handle finds the message of a worker that the entry answers.
func (p *replay) handle(m *model.Model, event model.Event, at time.Time, entry map[string]string) model.Decision {
	failIf(m == nil, "the model does not exist")
	var decisions []model.Decision
	var messages []model.Message
	var places []int
	for i, claimed := range p.consumed {
		if claimed[0] != 'o' || slices.Contains(p.consumed[:i], claimed) {
			continue
		}
		message, err := model.Wire{}.DecodeMessage([]byte(claimed[1:]))
		if err != nil || message.UID != m.UID || message.Type == model.MessageStatus {
			continue
		}
		decision, outcome := m.Handle(message, at)
		if outcome == model.Applied && says(decision, event, entry) {
			decisions, messages, places = append(decisions, decision), append(messages, message), append(places, i)
		}
	}
	if len(places) == 0 {
		fail("no message says so for the model as it is: %v", fields(m))
	}
	chosen := p.choose(len(places))
	p.message = &messages[chosen]
	p.consumed = slices.Delete(p.consumed, places[chosen], places[chosen]+1)
	return decisions[chosen]
}

// answeredCommand finds the command that the entry answers: in a message, or of an operator who carries it out himself.
func (p *replay) answeredCommand(uid string, m *model.Model, event model.Event, at time.Time, entry map[string]string) model.Decision {
	var decisions []model.Decision
	var answer []func()
	for i, claimed := range p.consumed {
		if claimed[0] != 'c' || slices.Contains(p.consumed[:i], claimed) {
			continue
		}
		command, err := model.DecodeCommand([]byte(claimed[1:]))
		if err != nil || command.UID != uid {
			continue
		}
		if decision, ok := p.carryOut(m, command, event, at, entry); ok {
			decisions = append(decisions, decision)
			answer = append(answer, func() { p.answer(i, uid); p.ids.applied[command.ID]++ })
		}
	}
	for i, command := range p.left {
		if decision, ok := p.carryOut(m, command, event, at, entry); ok && command.UID == uid {
			decisions = append(decisions, decision)
			answer = append(answer, func() { p.left = slices.Delete(p.left, i, i+1) })
		}
	}
	if decision, id, found := p.wished(m, event, entry); found {
		failIf(event == model.EventRun && (p.oracle.wishes[id].started[uid] || p.begun[uid]),
			"the bulk %s runs the model again, though an attempt was started since it began", id)
		p.granted[id]++
		return decision
	}
	failIf(len(decisions) == 0, "no command, no order and no bulk says so")
	chosen := p.choose(len(decisions))
	answer[chosen]()
	return decisions[chosen]
}

// answer takes out the command that an entry answers, and those about the same model before it: no later entry can answer them.
func (p *replay) answer(at int, uid string) {
	rest := slices.DeleteFunc(slices.Clone(p.consumed[:at]), func(message string) bool { return subject(message) == uid })
	p.passed += at - len(rest)
	p.consumed = append(rest, p.consumed[at+1:]...)
}

func (p *replay) carryOut(m *model.Model, command model.Command, event model.Event, at time.Time, entry map[string]string) (model.Decision, bool) {
	exists := m != nil
	if !exists {
		m = &model.Model{UID: command.UID}
		_ = m.Resolve(policy.Default(), p.schedules.Get)
	}
	policies := model.Policies{ByName: map[string]policy.Policy{command.Definition.PolicyName: p.named(command.Definition.PolicyName)}}
	stands := slices.Contains(p.input, m.Entry())
	for _, taken := range []bool{!stands, true} {
		m.Taken = taken
		decision, outcome, err := m.Execute(&command, policies, exists, at)
		if err == nil && outcome == model.Applied && says(decision, event, entry) {
			return decision, true
		}
		if facts := p.oracle.attempts[m.AttemptUID]; !stands || facts == nil || !facts.handed || facts.since < p.since {
			break // otherwise it was handed back since the round began: an earlier look has found it taken
		}
	}
	return model.Decision{}, false
}

// named is the policy that a command names: it is read behind the policies of the models, and the shared one may have changed meanwhile.
func (p *replay) named(name string) policy.Policy {
	if name == sharedPolicy {
		return p.compiled(p.meant)
	}
	return p.policy(name)
}

// says reports whether a decision is the one in the journal.
func says(decision model.Decision, event model.Event, entry map[string]string) bool {
	reason := ""
	if decision.Ended != nil {
		reason = decision.Ended.Reason
	}
	return decision.Event == event && reason == entry["reason"] && decision.By == entry["by"] && (event == model.EventRemove ||
		model.FormatTime(decision.Next.RefreshAt) == entry["refresh_at"] && decision.Next.Why == entry["refresh_why"])
}

// died decides about a model whose worker has died: the worker had begun the attempt, and gives no heartbeats.
func (p *replay) died(m *model.Model, at time.Time) model.Decision {
	failIf(m == nil || m.ProcessingAt.IsZero(), "a worker died over what nobody had begun")
	owner := slices.IndexFunc(slices.Sorted(maps.Keys(p.before.taken)), func(owner string) bool {
		seen, known := p.before.workers[owner]
		dead := known && !p.living(time.UnixMilli(int64(seen)).UTC())
		return dead && slices.ContainsFunc(p.before.taken[owner], func(entry string) bool { return attemptOf(entry) == m.AttemptUID })
	})
	failIf(owner < 0, "no dead worker had taken %s", m.AttemptUID)
	return m.WorkerDied(at)
}

// deferred are the events that end an attempt which does not count.
var deferred = map[model.Event]bool{model.EventPostponed: true, model.EventInterrupted: true, model.EventQueueTimeout: true}
