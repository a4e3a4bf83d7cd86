package simulation

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/model"
)

func (p *replay) checkModels() {
	uids := maps.Clone(p.before.payloads)
	for _, others := range []map[string]map[string]string{p.before.models, p.after.models} {
		for uid := range others {
			uids[uid] = ""
		}
	}
	maps.Copy(uids, p.after.payloads)
	for _, uid := range slices.Sorted(maps.Keys(uids)) {
		want, got := p.before.models[uid], p.after.models[uid]
		payload := p.before.payloads[uid]
		if m, touched := p.models[uid]; touched {
			if want, payload = nil, ""; m != nil {
				want, payload = fields(m), m.Payload
				want["rev"] = strconv.FormatInt(p.rev(uid), 10)
			}
		}
		if want != nil {
			want = maps.Clone(want)
			p.checkHeard(want, got)
		}
		diff := cmp.Diff(untold(want), untold(got))
		failIf(diff != "", "%s (-want +got):\n%s", uid, diff)
		failIf(payload != p.after.payloads[uid], "%s has the payload %s, want %s", uid, p.after.payloads[uid], payload)
		newest, started := p.newest[uid]
		if !started {
			newest = p.oracle.newest[uid]
		}
		if status := got["user_friendly_status"]; status != "" && status != newest { // a status names its attempt
			fail("%s shows the status of attempt %s, want that of the attempt which was started last, %s", uid, status, newest)
		}
	}
}

// rev is the revision that a model must have: it counts the transitions, from the clock at which the model was created, or from what was
// removed just before.
func (p *replay) rev(uid string) int64 {
	first, created := p.first[uid]
	if !created {
		first, _ = strconv.ParseInt(p.before.models[uid]["rev"], 10, 64)
	}
	return first + int64(p.steps[uid])
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

// attemptOf is the attempt of an entry of the input list.
func attemptOf(raw string) string {
	entry, _ := model.Wire{}.ParseEntry(raw)
	return entry.AttemptUID
}

// checkInput checks that entries left and joined the input list exactly as decided.
func (p *replay) checkInput() {
	if len(p.after.journal) == 0 {
		p.checkMoves()
		return
	}
	want := p.standing()
	for _, change := range p.changed {
		if at := slices.Index(want, change[0]); at >= 0 {
			want[at] = change[1]
		}
	}
	want = append(want, p.started...)
	if !slices.Equal(want, p.after.input) {
		fail("input (-want +got):\n%s", cmp.Diff(want, p.after.input))
	}
}

// standing lists the entries of before that the decisions so far have left in the input list.
func (p *replay) standing() []string {
	return slices.DeleteFunc(slices.Clone(p.before.input), func(entry string) bool {
		uid := attemptOf(entry)
		// What was handed back while the decision was made may stay: a worker will find it stale.
		return slices.Contains(p.back, uid) || p.ended[uid] != "" && !slices.Contains(p.after.input, entry)
	})
}

// checkMoves checks a deed that decided nothing: only who works may move entries, and none comes from nowhere. Of those that are
// gone, a pop took the oldest, and all others were answered or did not count any more.
func (p *replay) checkMoves() {
	before, after := p.before.entries(), p.after.entries()
	if !p.work && !slices.Equal(before, after) {
		fail("entries (-want +got):\n%s", cmp.Diff(before, after))
	}
	if popped := len(p.before.input) - len(p.after.input); p.pops && !slices.Equal(p.before.input[popped:], p.after.input) {
		fail("popped other than the oldest (-before +after):\n%s", cmp.Diff(p.before.input, p.after.input))
	}
	for _, entry := range p.after.input {
		failIf(!slices.Contains(p.before.input, entry) && p.over(attemptOf(entry)), "an attempt that was over is offered again: %s", entry)
	}
	answered := p.answered()
	for _, entry := range before {
		uid := attemptOf(entry)
		hash := p.before.models[p.oracle.attempts[uid].model]
		// If the deadline was seen to pass, or was moved, the attempt is given up: that costs one more deadline, as a death would.
		moved := hash["processing_at"] != "" || hash["taken_at"] != ""
		deadline := instant(hash["deadline_at"])
		passed := slices.ContainsFunc(p.clock, func(at time.Time) bool { return !deadline.After(at) }) // and the clock was set back since
		counts := hash["attempt_uid"] == uid && (deadline.After(p.now) && !moved && !passed || p.unjudged(p.oracle.attempts[uid].model, deadline))
		gone := !slices.Contains(after, entry)
		switch {
		case counts && gone && !p.pops && !p.answers(uid):
			fail("an attempt that counts was lost: %s", entry)
		case gone && p.answers(uid) && !answered[uid]:
			fail("an answer was swallowed: %s", entry)
		case gone:
			delete(answered, uid)
		}
	}
	failIf(len(answered) > 0, "a worker pool has answered what it did not have: %v", answered)
}

// over reports whether an attempt was over before the round began: it had ended, or its deadline had passed and was judged.
func (p *replay) over(attemptUID string) bool {
	facts := p.oracle.attempts[attemptUID]
	if facts == nil {
		return true
	}
	deadline := instant(p.before.models[facts.model]["deadline_at"])
	passed := len(p.clock) > 0 && !slices.ContainsFunc(p.clock, deadline.After) && !p.unjudged(facts.model, deadline)
	return facts.ended != "" && facts.at < p.since || facts.ended == "" && passed
}

// answers reports whether a worker pool wants to report how an attempt ended.
func (p *replay) answers(attemptUID string) bool {
	return slices.ContainsFunc(p.said, func(text string) bool { return endOf(text) == attemptUID })
}

// answered are the attempts whose end a worker pool has just reported.
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
	message, err := model.Wire{}.DecodeMessage([]byte(text))
	if err != nil || message.Type == model.MessageStarted || message.Type == model.MessageStatus {
		return ""
	}
	return message.AttemptUID
}

// journaled are the counters that count entries of the journal.
var journaled = []model.Event{
	model.EventStart, model.EventTimeout, model.EventWithdrawn, model.EventTaken, model.EventQueueTimeout, model.EventSkipped, model.EventGiveUp, model.EventReplan, model.EventLevel,
	model.EventSuccess, model.EventFailure, model.EventPostponed, model.EventInterrupted, model.EventSuspect, model.EventOutdated, model.EventStarted,
	model.EventParked, model.EventLimited, model.EventReleased, model.EventBecameLate, model.EventBecameStale, model.EventWatch,
	model.EventCreate, model.EventUpdate, model.EventRun, model.EventEnable, model.EventDisable, model.EventRemove, model.EventImport, model.EventAccept, model.EventCancel, "orphan", "circuit_opened", "circuit_closed",
}

// settled are the counters of messages that made no entry; kept are the counters of messages in rejected.
var (
	settled = []string{"status", "stale", "duplicate", "unchanged", "hold", "release"}
	kept    = []string{"unknown_model", "busy", "stopped", "malformed", "no_uid", "unknown_type"}
)

// checkCounters checks that journal and counters agree, that each message was counted exactly once, and that the outbox got each notice to owners.
func (p *replay) checkCounters() {
	failIf(len(p.after.outbox) != p.notices, "the outbox got %v, want %d notices", p.after.outbox, p.notices)
	entries := map[model.Event]int{}
	for _, entry := range p.after.journal {
		entries[model.Event(entry["event"])]++
	}
	for _, event := range journaled {
		grown := p.after.grown(p.before, string(event))
		failIf(grown != entries[event], "%s was counted %d times, the journal has it %d times", event, grown, entries[event])
	}
	grown := p.after.grown(p.before, "duplicate")
	failIf(grown < p.ids.repeats(), "%d commands were repeated, and %d duplicates counted", p.ids.repeats(), grown)
	counted, rejected := 0, 0
	for _, counter := range settled {
		counted += p.after.grown(p.before, counter)
	}
	for _, counter := range kept {
		rejected += p.after.grown(p.before, counter)
	}
	failIf(counted+rejected != len(p.consumed)+p.passed+p.ids.repeats() || rejected != len(p.after.rejected),
		"%d messages changed nothing, %d were counted and %d kept in rejected, want %d: %q", len(p.consumed)+p.passed, counted+rejected, len(p.after.rejected), rejected, p.consumed)
}

// checkSettled checks that no result was thrown away that still counts.
func (p *replay) checkSettled() {
	for _, claimed := range p.consumed {
		if claimed[0] != 'o' {
			continue
		}
		message, err := model.Wire{}.DecodeMessage([]byte(claimed[1:]))
		if err != nil || message.Type == model.MessageStatus || message.Type == model.MessageStarted {
			continue
		}
		current := p.after.models[message.UID]["attempt_uid"]
		failIf(current == message.AttemptUID, "a result of the running attempt was thrown away: %s", claimed)
	}
}

// soon reports whether something is to happen to a model before a dispatcher that fell asleep at an instant looks by itself.
func soon(s *model.State, at time.Time) bool {
	next := s.RefreshAt
	switch {
	case s.AttemptUID != "":
		next = s.ExpiresAt()
	case s.Disabled, s.Parked():
		return false
	}
	return !next.IsZero() && next.Before(at.Add(time.Second))
}

// checkWake checks that a dispatcher is woken by one call when something is to happen soon, and only then.
func (p *replay) checkWake() {
	calls := p.after.wake - p.before.wake
	urgent := p.wakes || p.frees
	latest := slices.MaxFunc(append(p.clock[:len(p.clock):len(p.clock)], p.now), time.Time.Compare).Add(time.Second)
	// A mended model may be due.
	for _, scores := range []map[string]float64{p.before.due, p.after.due, p.before.urgent, p.after.urgent, p.before.running, p.after.running} {
		for _, at := range scores {
			urgent = urgent || int64(at) < latest.UnixMilli()
		}
	}
	switch {
	case p.after.wake > 1:
		fail("%d wake calls wait, want one", p.after.wake)
	case p.wakes && p.after.wake == 0:
		fail("no dispatcher was woken")
	case calls > 0 && !urgent:
		fail("a dispatcher was woken for nothing")
	}
}

// record is the record that the history must have of an ended attempt.
type record struct {
	AttemptUID, Reason, Worker, Why           string
	Metrics, Suspect                          string
	Accepted                                  bool
	AttemptNo                                 int
	StartedAt, EndedAt, DeadlineAt, RefreshAt time.Time
	Duration                                  time.Duration
	Outcome                                   model.Event
}

// remember notes the history due after an entry of the journal about a running attempt, or about a doubted one.
func (p *replay) remember(uid string, m *model.Model, decision *model.Decision, entry map[string]string) {
	event, at := decision.Event, instant(entry["at"])
	replaces := deferred[event] && m.Deferrals > 0 || !m.Running() || event == model.EventLate // one of several that do not count takes the place of the one before
	if replaces {
		if len(p.records[uid]) > 0 {
			p.records[uid] = p.records[uid][1:]
		} else {
			p.replaced[uid] = true
		}
	}
	r := ending{record: record{
		AttemptUID: m.AttemptUID, AttemptNo: m.AttemptNo, StartedAt: m.StartedAt, EndedAt: at,
		Duration: max(0, at.Sub(m.StartedAt)), DeadlineAt: m.DeadlineAt, Outcome: event,
		Reason: entry["reason"], Worker: m.Worker, RefreshAt: instant(entry["refresh_at"]), Why: entry["refresh_why"], Suspect: decision.Ended.Suspect,
	}}
	switch {
	case event == model.EventLate: // its earlier end stays
		r = p.pasts[uid][0]
	case !m.Running(): // somebody has judged it
		r = p.pasts[uid][0]
		if r.Accepted = event != model.EventFailure; m.Held() {
			r.Outcome, r.Reason, r.RefreshAt, r.Why = event, entry["reason"], instant(entry["refresh_at"]), entry["refresh_why"]
		}
	case p.message != nil && p.message.Type == model.MessageSuccess:
		r.Metrics = model.FormatMetrics(p.message.Metrics)
		r.rows, r.carried = p.message.Metrics["rows"]
		r.unchanged = unchanged(p.message.Changed)
	}
	p.records[uid] = slices.Insert(p.records[uid], 0, r.record)
	p.noteEnd(uid, r, replaces)
	p.learn(m, r, decision)
}

// checkHistories checks that each history has got the attempts that have ended, in front of those that it had, and nothing else.
func (p *replay) checkHistories() {
	uids := maps.Clone(p.before.histories)
	maps.Copy(uids, p.after.histories)
	for uid := range p.records {
		uids[uid] = nil
	}
	for _, uid := range slices.Sorted(maps.Keys(uids)) {
		old := p.before.histories[uid]
		if p.forgotten[uid] {
			old = p.arrived[uid]
		}
		if p.replaced[uid] {
			old = old[min(1, len(old)):]
		}
		fresh, got := p.records[uid], p.after.histories[uid]
		fresh = fresh[:min(len(fresh), historyCap)]
		kept := old[:min(len(old), historyCap-len(fresh))]
		failIf(len(got) != len(fresh)+len(kept) || !slices.Equal(got[len(fresh):], kept),
			"the history of %s is %q, want %d attempts before %q", uid, got, len(fresh), kept)
		for i, want := range fresh {
			a, err := model.ParseAttempt(got[i])
			failIf(err != nil, "the history of %s: %w", uid, err)
			if is := recordOf(&a); is != want {
				fail("the history of %s (-want +got):\n%s", uid, cmp.Diff(want, is))
			}
		}
	}
}

type attempt struct {
	model  string
	gone   bool   // its entry is nowhere any more: a foreign worker has it, or it was answered or dropped
	handed bool   // it was handed back by a worker pool, or for one
	since  int    // in which step that was last
	entry  string // as a worker got it, or would get it
	ended  model.Event
	at     int // in which step it ended
	ticket int
	left   time.Time // when it left the input list first; zero: it is there still
}

// modelOf reads which model an entry of the input list is about.
func modelOf(entry string) string {
	var in work
	_ = json.Unmarshal([]byte(entry), &in)
	return in.UID
}

// book notes the effect of the decision on attempts.
func (p *replay) book(uid string, m *model.Model, decision model.Decision) {
	if attemptUID := decision.Next.AttemptUID; decision.Event == model.EventStart {
		failIf(p.oracle.attempts[attemptUID] != nil, "the attempt %s was started before", attemptUID)
		waiting := len(p.standing()) + len(p.started)
		failIf(p.maxQueued > 0 && waiting >= p.maxQueued, "%d attempts wait already", waiting)
		p.newest[uid], p.begun[uid] = attemptUID, true
		p.started = append(p.started, decision.Message)
		p.checkFence(uid, decision.Message, decision.Next.StartedAt)
		return
	}
	if decision.Event == model.EventRemove {
		delete(p.fences, uid)
	}
	if decision.Event == model.EventUpdate && decision.Message != "" {
		p.changed = append(p.changed, [2]string{m.Entry(), decision.Message})
		if at := slices.Index(p.input, m.Entry()); at >= 0 {
			p.input[at] = decision.Message
		}
	}
	if m == nil || !m.Running() || decision.Event != model.EventRemove && decision.Next.AttemptUID == m.AttemptUID {
		return
	}
	facts := p.oracle.attempts[m.AttemptUID]
	switch {
	case facts == nil || facts.model != uid:
		fail("the attempt %s was never started", m.AttemptUID)
	case facts.ended != "" || p.ended[m.AttemptUID] != "":
		fail("the attempt %s has ended before with %s%s", m.AttemptUID, facts.ended, p.ended[m.AttemptUID])
	}
	p.ended[m.AttemptUID] = decision.Event
	if takesBack[decision.Event] && !facts.handed {
		p.back = append(p.back, m.AttemptUID)
	}
}

// checkFence checks that the fences of a model only grow, whatever the clock has done, and are no less than the clock. The removal of a model
// forgets it.
func (p *replay) checkFence(uid, entry string, at time.Time) {
	var told struct{ Fence int64 }
	_ = json.Unmarshal([]byte(entry), &told)
	failIf(told.Fence <= p.fences[uid] || told.Fence < at.UnixMilli(), "the fence of %s is %d at %v, behind %d", uid, told.Fence, at, p.fences[uid])
	p.fences[uid] = told.Fence
}

// takesBack are the events that remove a queued attempt from the input list.
var takesBack = map[model.Event]bool{model.EventWithdrawn: true, model.EventRun: true, model.EventDisable: true, model.EventRemove: true, model.EventCancel: true, model.EventImport: true}
