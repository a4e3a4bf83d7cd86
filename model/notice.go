package model

import (
	"encoding/json"
	"time"

	"github.com/refreshd/refreshd/model/policy"
)

// Notification is what the owner of a model is told, as the outbox keeps it until it is delivered.
type Notification struct {
	UID       string
	Notice    policy.Notice
	At        time.Time
	AttemptNo int
	Reason    string // of a disabled model, or of the last failure of a failing one
	ErrorType string // of a failing one
	Why       string // of both
	// LastSuccessAt is that of a stale model; zero: it never succeeded.
	LastSuccessAt time.Time
}

// Notifications returns what the owner of a model is told of a decision at now, mostly nothing.
func (d *Decision) Notifications(uid string, now time.Time) (all []Notification) {
	if d.Notice != policy.NoticeNone && !d.Muted {
		all = append(all, d.notification(d.Notice, uid, now))
	}
	if d.TellsFresh {
		all = append(all, d.notification(policy.NoticeFresh, uid, now))
	}
	if d.TellsFailing {
		all = append(all, d.notification(policy.NoticeFailing, uid, now))
	}
	return all
}

func (d *Decision) notification(notice policy.Notice, uid string, now time.Time) Notification {
	n := Notification{UID: uid, Notice: notice, At: now, AttemptNo: d.Next.AttemptNo}
	if d.Ended != nil {
		n.AttemptNo = d.Ended.AttemptNo
	}
	switch notice {
	case policy.NoticeDisabled:
		n.Reason, n.Why = d.Next.DisabledReason, d.Next.Why
	case policy.NoticeFailing:
		n.Reason, n.ErrorType, n.Why = d.Ended.Reason, d.Ended.ErrorType, d.Next.Why
	case policy.NoticeStale:
		n.LastSuccessAt = d.Next.LastSuccessAt
	}
	return n
}

// AddressOf is the e-mail address of a recipient, as far as this model is concerned; empty: it names none, or none that is valid.
func (m *Model) AddressOf(to policy.Recipient) string {
	text := to.Address
	switch {
	case to.Label != "":
		text = m.Labels[to.Label]
	case to.Payload != "":
		var payload map[string]any
		if json.Unmarshal([]byte(m.Payload), &payload) != nil {
			return ""
		}
		text, _ = payload[to.Payload].(string)
	}
	if address, valid := policy.ParseAddress(text); valid {
		return address
	}
	return ""
}
