package explain

import (
	"cmp"
	"fmt"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/words"
)

// MissingRole is a kind of process that a model waits for in vain.
type MissingRole struct {
	Role    model.Role `json:"party"`
	Reason  string     `json:"reason"`
	Certain bool       `json:"certain"` // so long a silence has no other cause
}

// Missing is the role that the model misses; nil, which is null: none, or nobody has looked.
func (s Shown) Missing() *MissingRole {
	if s.Liveness == nil {
		return nil
	}
	missing, is := s.Liveness.MissingFor(&s.Record.State, s.Status)
	if !is {
		return nil
	}
	return &MissingRole{missing.Role, missing.String(), missing.Certain}
}

// StatusText says what the status means for this model.
func (s Shown) StatusText() string {
	text, r, now := string(s.Status), s.Record, s.Now
	switch s.Status {
	case model.StatusDisabled:
		if r.StoppedBy() == model.StoppedByHand {
			text += " by " + cmp.Or(r.DisabledWho, "hand") + ", until it is enabled"
		} else {
			text += " until the next update"
		}
		if r.DisabledReason != "" {
			text += ": " + r.DisabledReason
		}
	case model.StatusScheduled:
		text += ": starts " + words.Distance(r.RefreshAt, now)
	case model.StatusDue:
		what := "a dispatcher"
		if s.Liveness != nil && s.Liveness.LacksRoom(&r.State) {
			what = fmt.Sprintf("room in the input list (%d in line, %d in the hands of workers)", s.Liveness.Queued, s.Liveness.Held)
		}
		text += ": waits for " + what + " since " + words.Roughly(now.Sub(r.RefreshAt))
	case model.StatusParked:
		text += ": waits for " + string(r.ParkedBy) + " since " + words.Roughly(now.Sub(r.ParkedSince))
	case model.StatusQueued:
		text += ": waits for a worker since " + words.Roughly(now.Sub(r.StartedAt))
	case model.StatusProcessing:
		text += ": a worker has it, deadline " + words.Distance(r.DeadlineAt, now)
	case model.StatusFinished:
		text += ": nothing to do until it is saved or run"
	case model.StatusBroken:
		text += ": its key holds something else than a model; refreshd doctor tells more"
	}
	if missing := s.Missing(); missing != nil {
		text += "; " + missing.Reason
	}
	return text
}

// because tells why the model waits as it does, in a list and in its story alike.
func (s Shown) because(gates *model.Blockers, when func(time.Time) string) string {
	gate := s.Record.ParkedBy
	kind, name := gate.Split()
	switch opens, look := gates.Opens(gate, s.Now); {
	case s.Record.Broken:
		return s.Record.Fault
	case !s.Record.Parked():
		return s.Record.Why
	case gate.Timed() && opens:
		return string(gate) + " is over: a dispatcher lets it go"
	case gate.Timed():
		return StopText(gates, gate, look, when) + "; it starts once then"
	case kind == model.BlockerLimit:
		return "waits for limit " + name
	default:
		return "waits for the circuit of " + name
	}
}

// UTC is an instant as it is shown where models of several zones are told of.
func UTC(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05 MST") }

// FreshnessText says how fresh a model is, and when that changes next; empty: nothing is promised.
func FreshnessText(m *model.Model, when func(time.Time) string) string {
	switch {
	case m.Freshness == model.FreshnessStale:
		return "stale since " + when(m.StaleAt)
	case m.Watched():
		text := string(m.Freshness)
		if m.Freshness == model.FreshnessNever {
			text = "never succeeded yet"
		}
		if m.Freshness != model.FreshnessLate && m.Policy.WarnWithin > 0 {
			return text + ", late at " + when(m.StaleAt)
		}
		return text + ", stale at " + when(m.StaleAt)
	default:
		return ""
	}
}
