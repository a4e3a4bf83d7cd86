package simulation

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/refreshd/refreshd/model"
)

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
var takesBack = map[model.Event]bool{model.EventWithdrawn: true, model.EventRun: true, model.EventDisable: true, model.EventRemove: true, model.EventCancel: true, model.EventImport: true}

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
