package model

import (
	"cmp"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// Verdict is the guards' opinion of the numbers of a result that its worker has not published yet.
type Verdict string

// The verdicts. Only after the first one a worker publishes.
const (
	VerdictPublish Verdict = "publish" // nobody doubts them, or the policy only notifies
	VerdictHold    Verdict = "hold"    // somebody will have to accept them
	VerdictFail    Verdict = "fail"    // they are a failure
	VerdictStale   Verdict = "stale"   // the attempt does not count any more
)

// verdict judges the numbers of a message; doubt: why guards doubt them, or empty. m.Past is the history without them.
func (m *Model) verdict(message *Message) (verdict Verdict, doubt string) {
	if m.Doubts(message) {
		doubt = Doubt(m.Policy.Guard, message.Metrics, m.Past, m.Usual)
	}
	switch {
	case doubt == "" || cmp.Or(m.Policy.OnSuspect, policy.SuspectTell) == policy.SuspectTell:
		return VerdictPublish, doubt
	case m.Policy.OnSuspect == policy.SuspectHold && !m.Again: // else it runs again anyway
		return VerdictHold, doubt
	default:
		return VerdictFail, doubt
	}
}

// ready answers a worker that asks before it publishes: a sign of life. It ends an attempt whose payload was replaced.
func (m *Model) ready(message Message, now time.Time) (decision Decision) {
	if m.Outdated {
		decision = m.outdated(policy.Failure{}, nil, now)
		decision.Verdict = VerdictStale
		return decision
	}
	decision = m.sign(now)
	decision.Verdict, decision.Doubt = m.verdict(&message)
	return decision
}

// Reply renders the verdict for the worker that has asked by `ready`, as one JSON object. Without a verdict the attempt is stale.
func (m *Message) Reply(wire Wire, verdict Verdict, doubt string) string {
	wire = wire.WithDefaults()
	text := `{"` + wire.ModelName + `":` + document.Quote(m.UID) + `,"` + wire.AttemptName + `":` + document.Quote(m.AttemptUID) +
		`,"verdict":"` + string(cmp.Or(verdict, VerdictStale)) + `"`
	if doubt != "" {
		text += `,"reason":` + document.Quote(doubt)
	}
	return text + "}"
}
