package simulation

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/model"
)

// replay decides again what the journal says that a deed has decided, about the models as they really were.
type replay struct {
	*deed
	ledger   *ledger
	consumed []string                // messages that no entry has answered for yet
	left     []model.Command         // orders that no entry has answered for yet
	models   map[string]*model.Model // those that an entry was about, as they must be now; nil: removed
	steps    map[string]int          // entries by model since it was read or created
	created  map[string]time.Time
	started  []string               // entries that must have been pushed
	back     []string               // uids of attempts whose entries must have left the input list
	newest   map[string]string      // model -> uid of the attempt started here last
	ended    map[string]model.Event // attempts that ended here
	notices  int

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
	for _, entry := range p.after.journal {
		if err := p.enter(entry); err != nil {
			return fmt.Errorf("journal entry %v: %w", entry, err)
		}
	}
	for _, check := range []func() error{p.checkModels, p.checkInput, p.checkCounters, p.checkSettled, p.checkNotices} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// commit enters into the ledger what was found to be right.
func (p *replay) commit() {
	for uid, attemptUID := range p.newest {
		p.ledger.newest[uid] = attemptUID
	}
	for _, message := range p.started {
		p.ledger.attempts[model.InputUID(message)] = &attempt{model: modelOf(message)}
	}
	for attemptUID, event := range p.ended {
		p.ledger.attempts[attemptUID].ended = event
	}
	if p.orders != nil {
		*p.orders = p.left
	}
	left := p.after.entries()
	for _, entry := range p.before.entries() {
		facts := p.ledger.attempts[model.InputUID(entry)]
		facts.gone = facts.gone || !slices.Contains(left, entry)
		facts.handed = facts.handed || !slices.Contains(p.before.input, entry) && slices.Contains(p.after.input, entry)
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
	m := p.model(uid)
	if event == "orphan" {
		if m != nil {
			return errors.New("the model exists")
		}
		return nil
	}
	decision, err := p.decide(uid, m, event, at, entry)
	if err != nil {
		return err
	}
	if decision.Event != event {
		return fmt.Errorf("the decision is %s", decision.Event)
	}
	if err := p.book(uid, m, decision); err != nil {
		return err
	}
	if decision.Notice != model.NoticeNone && !decision.Muted {
		p.notices++
	}
	return p.follow(uid, m, decision, at)
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
	_ = m.Resolve(p.policy(m.PolicyName), p.schedules.Get)
	p.models[uid] = m
	return m
}

// policy reads a stored policy.
func (p *replay) policy(name string) model.Policy {
	if name == "" {
		return model.DefaultPolicy()
	}
	text := p.after.policies[name]
	if policy, cached := p.policies[text]; cached {
		return policy
	}
	var value any
	_ = json.Unmarshal([]byte(text), &value)
	policy, err := model.ParsePolicy(value)
	if err != nil {
		policy = model.DefaultPolicy()
	}
	p.policies[text] = policy
	return policy
}

// decide asks package model; what the entry says of its occasion must be true.
func (p *replay) decide(uid string, m *model.Model, event model.Event, at time.Time, entry map[string]string) (model.Decision, error) {
	switch event {
	case model.EventStart, model.EventSkipped, model.EventGiveUp:
		if m == nil || !m.Due(at) {
			return model.Decision{}, errors.New("the model is not due")
		}
		return m.Wake(at, entry["attempt_uid"]), nil
	case model.EventTimeout, model.EventQueueTimeout, model.EventWithdrawn:
		if m == nil || !m.Running() || m.DeadlineAt.After(at) {
			return model.Decision{}, errors.New("no deadline has passed")
		}
		if event == model.EventWithdrawn && !p.queued(m.AttemptUID) {
			return model.Decision{}, errors.New("the attempt was taken by a worker")
		}
		if event == model.EventWithdrawn {
			return m.Withdraw(at), nil
		}
		facts := p.ledger.attempts[m.AttemptUID]
		if handed := facts != nil && facts.handed; p.queued(m.AttemptUID) && m.ProcessingAt.IsZero() && !handed {
			return model.Decision{}, errors.New("the attempt was never taken")
		}
		return m.Expire(at), nil
	case model.EventCreate, model.EventUpdate, model.EventRun, model.EventEnable, model.EventDisable, model.EventRemove:
		return p.obey(uid, m, event, at, entry)
	default:
		return p.handle(m, event, at, entry)
	}
}

// queued reports whether an attempt stood in the input list.
func (p *replay) queued(attemptUID string) bool {
	return slices.ContainsFunc(p.before.input, func(entry string) bool { return model.InputUID(entry) == attemptUID })
}

// handle finds the message of a worker that the entry answers.
func (p *replay) handle(m *model.Model, event model.Event, at time.Time, entry map[string]string) (model.Decision, error) {
	if m == nil {
		return model.Decision{}, errors.New("the model does not exist")
	}
	var decisions []model.Decision
	var places []int
	for i, claimed := range p.consumed {
		if claimed[0] != 'o' || slices.Contains(p.consumed[:i], claimed) {
			continue
		}
		message, err := model.DecodeMessage([]byte(claimed[1:]))
		if err != nil || message.UID != m.UID || message.Type == model.MessageStatus {
			continue
		}
		decision, outcome := m.Handle(message, at)
		if outcome == model.Applied && says(decision, event, entry) {
			decisions, places = append(decisions, decision), append(places, i)
		}
	}
	if len(places) == 0 {
		return model.Decision{}, fmt.Errorf("no message says so for the model as it is: %v", fields(m))
	}
	chosen := p.choose(len(places))
	p.consumed = slices.Delete(p.consumed, places[chosen], places[chosen]+1)
	return decisions[chosen], nil
}

// obey finds the command that the entry answers: in a message, or of an operator who carries it out himself.
func (p *replay) obey(uid string, m *model.Model, event model.Event, at time.Time, entry map[string]string) (model.Decision, error) {
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
			answer = append(answer, func() { p.consumed = slices.Delete(p.consumed, i, i+1) })
		}
	}
	for i, command := range p.left {
		if decision, ok := p.carryOut(m, command, event, at, entry); ok && command.UID == uid {
			decisions = append(decisions, decision)
			answer = append(answer, func() { p.left = slices.Delete(p.left, i, i+1) })
		}
	}
	if len(decisions) == 0 {
		return model.Decision{}, errors.New("no command and no order says so")
	}
	chosen := p.choose(len(decisions))
	answer[chosen]()
	return decisions[chosen], nil
}

func (p *replay) carryOut(m *model.Model, command model.Command, event model.Event, at time.Time, entry map[string]string) (model.Decision, bool) {
	exists := m != nil
	if !exists {
		m = &model.Model{UID: command.UID}
		_ = m.Resolve(model.DefaultPolicy(), p.schedules.Get)
	}
	decision, outcome, err := m.Obey(command, p.policy(command.Definition.PolicyName), exists, at)
	return decision, err == nil && outcome == model.Applied && says(decision, event, entry)
}

// says reports whether a decision is the one that the journal tells of.
func says(decision model.Decision, event model.Event, entry map[string]string) bool {
	reason := ""
	if decision.Ended != nil {
		reason = decision.Ended.Reason
	}
	return decision.Event == event && reason == entry["reason"] && (event == model.EventRemove ||
		model.FormatTime(decision.Next.RefreshAt) == entry["refresh_at"] && decision.Next.Why == entry["refresh_why"])
}

// book notes what the decision does to attempts.
func (p *replay) book(uid string, m *model.Model, decision model.Decision) error {
	if decision.Event == model.EventStart {
		return p.bookStart(uid, decision)
	}
	if m == nil || !m.Running() || decision.Event != model.EventRemove && decision.Next.AttemptUID == m.AttemptUID {
		return nil
	}
	facts := p.ledger.attempts[m.AttemptUID]
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
	if p.ledger.attempts[attemptUID] != nil {
		return fmt.Errorf("the attempt %s was started before", attemptUID)
	}
	if p.maxQueued > 0 && len(p.before.input)+len(p.started)-len(p.back) >= p.maxQueued {
		return fmt.Errorf("%d attempts wait already", len(p.before.input)+len(p.started))
	}
	p.newest[uid] = attemptUID
	p.started = append(p.started, decision.Message)
	return nil
}

// follow moves the model on to the state that follows.
func (p *replay) follow(uid string, m *model.Model, decision model.Decision, at time.Time) error {
	if decision.Event == model.EventRemove {
		if m == nil {
			return errors.New("the model does not exist")
		}
		p.models[uid], p.steps[uid] = nil, 0
		return nil
	}
	p.steps[uid]++
	if decision.Event == model.EventCreate {
		p.created[uid], p.steps[uid] = at, 0
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

// checkModels compares every model with what it must be.
func (p *replay) checkModels() error {
	uids := maps.Clone(p.before.models)
	maps.Copy(uids, p.after.models)
	for _, uid := range slices.Sorted(maps.Keys(uids)) {
		want, got := p.before.models[uid], p.after.models[uid]
		payload := p.before.payloads[uid]
		if m, touched := p.models[uid]; touched {
			want = nil
			if m != nil {
				want, payload = fields(m), m.Payload
				want["rev"] = p.rev(uid)
			}
		}
		if diff := cmp.Diff(untold(want), untold(got)); diff != "" {
			return fmt.Errorf("%s (-want +got):\n%s", uid, diff)
		}
		if got != nil && payload != p.after.payloads[uid] {
			return fmt.Errorf("%s has the payload %s, want %s", uid, p.after.payloads[uid], payload)
		}
		if err := p.checkStatus(uid, got["user_friendly_status"]); err != nil {
			return err
		}
	}
	return nil
}

// rev is the revision that a model must have: it counts the transitions, from the clock at which the model was created.
func (p *replay) rev(uid string) string {
	rev, _ := strconv.ParseInt(p.before.models[uid]["rev"], 10, 64)
	if at, created := p.created[uid]; created {
		rev = at.UnixMilli()
	}
	return strconv.FormatInt(rev+int64(p.steps[uid]), 10)
}

func untold(hash map[string]string) map[string]string {
	rest := maps.Clone(hash)
	for _, name := range told {
		delete(rest, name)
	}
	if len(rest) == 0 {
		return nil
	}
	return rest
}

// checkStatus: a status names its attempt, and it must be that of the attempt which was started last.
func (p *replay) checkStatus(uid, status string) error {
	newest, started := p.newest[uid]
	if !started {
		newest = p.ledger.newest[uid]
	}
	if status != "" && status != newest {
		return fmt.Errorf("%s shows the status of attempt %s, want of %s", uid, status, newest)
	}
	return nil
}

// checkInput checks that entries left and joined the input list exactly as decided.
func (p *replay) checkInput() error {
	if len(p.after.journal) == 0 {
		return p.checkMoves()
	}
	want := slices.DeleteFunc(slices.Clone(p.before.input), func(entry string) bool {
		uid := model.InputUID(entry)
		// What was handed back while the decision was made may stay: a worker will find it stale.
		return slices.Contains(p.back, uid) || p.ended[uid] != "" && !slices.Contains(p.after.input, entry)
	})
	want = append(want, p.started...)
	if !slices.Equal(want, p.after.input) {
		return fmt.Errorf("input (-want +got):\n%s", cmp.Diff(want, p.after.input))
	}
	return nil
}

// checkMoves checks a deed that decided nothing: only who works may move entries, and none comes from nowhere. Of those that are
// gone, a pop took the oldest, and all others were answered or did not count any more.
func (p *replay) checkMoves() error {
	before, after := p.before.entries(), p.after.entries()
	if !p.work && !slices.Equal(before, after) {
		return fmt.Errorf("entries (-want +got):\n%s", cmp.Diff(before, after))
	}
	if popped := len(p.before.input) - len(p.after.input); p.pops && !slices.Equal(p.before.input[popped:], p.after.input) {
		return fmt.Errorf("popped other than the oldest (-before +after):\n%s", cmp.Diff(p.before.input, p.after.input))
	}
	answered := p.answered()
	for _, entry := range before {
		uid := model.InputUID(entry)
		hash := p.before.models[p.ledger.attempts[uid].model]
		// Whoever saw the deadline pass before `started` moved it gives the attempt up: that costs one more deadline, as a death would.
		moved := hash["processing_at"] != ""
		counts := hash["attempt_uid"] == uid && instant(hash["deadline_at"]).After(p.now) && !moved
		gone := !slices.Contains(after, entry)
		switch {
		case counts && gone && !p.pops && !p.answers(uid):
			return fmt.Errorf("an attempt that counts was lost: %s", entry)
		case gone && p.answers(uid) && !answered[uid]:
			return fmt.Errorf("an answer was swallowed: %s", entry)
		case gone:
			delete(answered, uid)
		}
	}
	if len(answered) > 0 {
		return fmt.Errorf("a worker pool has answered what it did not have: %v", answered)
	}
	return nil
}

// answers reports whether a worker pool wants to tell how an attempt ended.
func (p *replay) answers(attemptUID string) bool {
	return slices.ContainsFunc(p.said, func(text string) bool { return endOf(text) == attemptUID })
}

// answered are the attempts whose end a worker pool has just told.
func (p *replay) answered() map[string]bool {
	told := map[string]bool{}
	for _, message := range p.sent {
		if uid := endOf(message[1:]); len(p.said) > 0 && uid != "" {
			told[uid] = true
		}
	}
	return told
}

// endOf is the attempt that a message of a worker pool ends; empty: none.
func endOf(text string) string {
	message, err := model.DecodeMessage([]byte(text))
	if err != nil || message.Type == model.MessageStarted || message.Type == model.MessageStatus {
		return ""
	}
	return message.AttemptUID
}

// journaled are the counters that count entries of the journal.
var journaled = []model.Event{
	model.EventStart, model.EventTimeout, model.EventWithdrawn, model.EventQueueTimeout, model.EventSkipped, model.EventGiveUp,
	model.EventSuccess, model.EventFailure, model.EventPostponed, model.EventInterrupted, model.EventStarted,
	model.EventCreate, model.EventUpdate, model.EventRun, model.EventEnable, model.EventDisable, model.EventRemove, "orphan",
}

// settled are the counters of messages that made no entry; kept are those whose messages stand in rejected.
var (
	settled = []string{"status", "stale", "duplicate", "unchanged"}
	kept    = []string{"unknown_model", "busy", "malformed", "no_uid", "unknown_type"}
)

// checkCounters checks that journal and counters agree, and that each message was counted exactly once.
func (p *replay) checkCounters() error {
	entries := map[model.Event]int{}
	for _, entry := range p.after.journal {
		entries[model.Event(entry["event"])]++
	}
	for _, event := range journaled {
		if grown := p.after.grown(p.before, string(event)); grown != entries[event] {
			return fmt.Errorf("%s was counted %d times, the journal has it %d times", event, grown, entries[event])
		}
	}
	counted, rejected := 0, 0
	for _, counter := range settled {
		counted += p.after.grown(p.before, counter)
	}
	for _, counter := range kept {
		rejected += p.after.grown(p.before, counter)
	}
	if counted+rejected != len(p.consumed) || rejected != len(p.after.rejected) {
		return fmt.Errorf("%d messages changed nothing, %d were counted and %d kept in rejected, want %d: %q", len(p.consumed), counted+rejected, len(p.after.rejected), rejected, p.consumed)
	}
	return nil
}

// checkSettled checks that no result was thrown away that still counts.
func (p *replay) checkSettled() error {
	for _, claimed := range p.consumed {
		if claimed[0] != 'o' {
			continue
		}
		message, err := model.DecodeMessage([]byte(claimed[1:]))
		if err != nil || message.Type == model.MessageStatus || message.Type == model.MessageStarted {
			continue
		}
		if current := p.after.models[message.UID]["attempt_uid"]; current == message.AttemptUID {
			return fmt.Errorf("a result of the running attempt was thrown away: %s", claimed)
		}
	}
	return nil
}

// checkNotices checks that the outbox got what owners are to be told.
func (p *replay) checkNotices() error {
	if len(p.after.outbox) != p.notices {
		return fmt.Errorf("the outbox got %v, want %d notices", p.after.outbox, p.notices)
	}
	return nil
}
