package model

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/refreshd/refreshd/model/policy"
)

// Two events that no model takes part in.
const (
	// EventOrphan ends a uid in the due or running set that has no model.
	EventOrphan Event = "orphan"
	// EventMend writes the due and running sets anew from a model: neither journaled nor counted.
	EventMend Event = "mend"
)

// Mend decides that the due and running sets are to be written anew from the state as it is.
func (m *Model) Mend() Decision { return Decision{Event: EventMend, Next: m.State} }

// JournalEntry is one transition in the journal. A zero value is absent, or a field of the model that stays unchanged.
type JournalEntry struct {
	UID            string
	Event          Event
	At             time.Time
	AttemptUID     string // of the attempt that was started, ended or withdrawn
	AttemptNo      int
	EndedNo        int    // AttemptNo of an attempt that has ended
	EndedUID       string // AttemptUID of a superseded one: no field of the model has it
	RefreshAt      time.Time
	DeadlineAt     time.Time
	Why            string
	Reason         string // of a failure
	ErrorType      string
	Changed        *bool // the worker's word about its success; nil: none
	PolicyError    string
	Held           bool // the circuit of the queue held a final failure back
	Final          bool // the failure disabled the model
	DisabledReason string
	By             string // who wanted it, as a command says
	// Of an ended attempt whose worker reported its begin: the wait until then, the length of the work, and the worker.
	Wait, Work time.Duration
	Who        string
	About      string // of an entry without a model: the key of the circuit, or the new fingerprint
	// Freshness is the new freshness of the model, PriorFreshness the one before. Both empty: no change.
	Freshness, PriorFreshness Freshness
}

// Journal returns the journal entry of a decision about a model at now; false: it is no transition.
func (d *Decision) Journal(uid string, now time.Time) (JournalEntry, bool) {
	if d.Event == EventStatus || d.Event == EventMend {
		return JournalEntry{}, false
	}
	e := JournalEntry{
		UID: uid, Event: d.Event, At: now, AttemptUID: d.Next.AttemptUID, AttemptNo: d.Next.AttemptNo,
		RefreshAt: d.Next.RefreshAt, DeadlineAt: d.Next.DeadlineAt, Why: d.Next.Why,
		PolicyError: d.PolicyError, Held: d.Held, Final: d.Final, By: d.By,
	}
	if d.PriorFreshness != d.Next.Freshness {
		e.Freshness, e.PriorFreshness = d.Next.Freshness, d.PriorFreshness
	}
	if d.Event == EventWithdrawn { // the attempt ended without a record of it
		e.AttemptUID, e.EndedNo = d.Next.LastAttemptUID, d.Next.AttemptNo+1
	}
	if d.Ended != nil {
		e.AttemptUID, e.EndedNo = d.Ended.AttemptUID, d.Ended.AttemptNo
		e.Reason, e.ErrorType, e.Changed = d.Ended.Reason, d.Ended.ErrorType, d.Ended.Changed
		if wait, work, known := d.Ended.Lengths(); known {
			e.Wait, e.Work, e.Who = wait, work, d.Ended.Worker
		}
		if d.Next.LastAttemptUID != d.Ended.AttemptUID {
			e.EndedUID = d.Ended.AttemptUID
		}
	}
	if d.Final {
		e.DisabledReason = d.Next.DisabledReason
	}
	e.AttemptNo = cmp.Or(e.EndedNo, e.AttemptNo)
	return e, true
}

// wakeWithin is the tick of a dispatcher that is not woken.
const wakeWithin = time.Second

// NotifiesDispatcher reports whether a decision at now brings a start or a deadline that a sleeping dispatcher would meet too late.
func (d *Decision) NotifiesDispatcher(now time.Time) bool {
	next := d.Next.ExpiresAt()
	if d.Next.Waiting() && d.Next.ParkedBy == "" {
		next = d.Next.RefreshAt
	}
	return !next.IsZero() && next.Before(now.Add(wakeWithin)) && d.Event != EventStart
}

// Notification is a notice for the owner of a model, as the outbox keeps it.
type Notification struct {
	UID       string
	Notice    policy.Notice
	At        time.Time
	AttemptNo int
	Reason    string // of a disabled model, or of the last failure of a failing one
	ErrorType string // of a failing one
	Why       string // of both
	// LastSuccessAt is the last success of a stale model; zero: it never succeeded.
	LastSuccessAt time.Time
}

// Notifications returns the notices of a decision at now, mostly none.
func (d *Decision) Notifications(uid string, now time.Time) (all []Notification) {
	if d.Notice != policy.NoticeNone && !d.Muted {
		all = append(all, d.notification(d.Notice, uid, now))
	}
	if d.NotifiesFresh {
		all = append(all, d.notification(policy.NoticeFresh, uid, now))
	}
	if d.NotifiesFailing {
		all = append(all, d.notification(policy.NoticeFailing, uid, now))
	}
	if d.NotifiesSuspect {
		all = append(all, d.notification(policy.NoticeSuspect, uid, now))
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
	case policy.NoticeSuspect:
		n.Reason, n.Why = d.Ended.Suspect, d.Next.Why
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
