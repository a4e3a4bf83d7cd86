package simulation

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/model"
)

// record is what the history must tell of an attempt that has ended.
type record struct {
	AttemptUID, Reason, Worker, Why           string
	AttemptNo                                 int
	StartedAt, EndedAt, DeadlineAt, RefreshAt time.Time
	Duration                                  time.Duration
	Outcome                                   model.Event
}

// historyCap is how many attempts a history keeps.
const historyCap = 3

// deferred are the events that end an attempt which does not count.
var deferred = map[model.Event]bool{model.EventPostponed: true, model.EventInterrupted: true, model.EventQueueTimeout: true}

// remember notes what the history must have got by an entry of the journal about a running attempt.
func (p *replay) remember(uid string, m *model.Model, event model.Event, entry map[string]string) {
	ended := instant(entry["at"])
	if deferred[event] && m.Deferrals > 0 { // one of several that do not count: it takes the place of the one before
		if len(p.records[uid]) > 0 {
			p.records[uid] = p.records[uid][1:]
		} else {
			p.replaced[uid] = true
		}
	}
	p.records[uid] = slices.Insert(p.records[uid], 0, record{
		AttemptUID: m.AttemptUID, AttemptNo: m.AttemptNo, StartedAt: m.StartedAt, EndedAt: ended,
		Duration: max(0, ended.Sub(m.StartedAt)), DeadlineAt: m.DeadlineAt, Outcome: event,
		Reason: entry["reason"], Worker: m.Worker, RefreshAt: instant(entry["refresh_at"]), Why: entry["refresh_why"],
	})
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
			is := record{a.AttemptUID, a.Reason, a.Worker, a.Why, a.AttemptNo, a.StartedAt, a.EndedAt, a.DeadlineAt, a.RefreshAt, a.Duration, a.Outcome}
			if is != want {
				fail("the history of %s (-want +got):\n%s", uid, cmp.Diff(want, is))
			}
		}
	}
}

// attempt is what became of one attempt.
type attempt struct {
	model  string
	gone   bool   // its entry stands nowhere any more: a foreign worker has it, or it was answered or dropped
	handed bool   // it was handed back by a worker pool, or for one
	since  int    // in which step that was last
	entry  string // as a worker got it, or would get it
	ended  model.Event
	at     int // in which step it ended
	ticket int
	left   time.Time // when it left the input list first; zero: it stands there still
}

// modelOf reads which model an entry of the input list is about.
func modelOf(entry string) string {
	var in work
	_ = json.Unmarshal([]byte(entry), &in)
	return in.UID
}

// book notes what the decision does to attempts.
func (p *replay) book(uid string, m *model.Model, decision model.Decision) {
	if attemptUID := decision.Next.AttemptUID; decision.Event == model.EventStart {
		failIf(p.oracle.attempts[attemptUID] != nil, "the attempt %s was started before", attemptUID)
		waiting := len(p.standing()) + len(p.started)
		failIf(p.maxQueued > 0 && waiting >= p.maxQueued, "%d attempts wait already", waiting)
		p.newest[uid], p.begun[uid] = attemptUID, true
		p.started = append(p.started, decision.Message)
		return
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

// takesBack are the events that remove a queued attempt from the input list.
var takesBack = map[model.Event]bool{model.EventWithdrawn: true, model.EventRun: true, model.EventDisable: true, model.EventRemove: true, model.EventCancel: true, model.EventImport: true}
