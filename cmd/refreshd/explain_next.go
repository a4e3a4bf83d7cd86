package main

import (
	"fmt"
	"time"

	"github.com/refreshd/refreshd/model/policy"

	"github.com/refreshd/refreshd/model"
)

// prospects are what may come of the running attempt, or of the next one. Nil: that cannot happen.
type prospects struct {
	StartAt *string   `json:"start_at"` // of the next attempt; null: it runs already, or none will
	Success *prospect `json:"success"`
	Failure *prospect `json:"failure"`
	Lost    *prospect `json:"lost"`
	// GiveUp: no attempt comes before the end of the give-up window.
	GiveUp *prospect `json:"give_up"`

	jitter float64
}

// prospect is what one outcome leads to.
type prospect struct {
	At        string  `json:"at"` // of the outcome
	RefreshAt *string `json:"refresh_at"`
	Why       string  `json:"refresh_why"`
	AttemptNo int     `json:"attempt_no"`
	Exhausted bool    `json:"retries_exhausted"`
	Disabled  bool    `json:"disabled"`
	Reason    string  `json:"reason"` // for the owner of a disabled model

	at, refresh time.Time
}

// foresee asks the model what it would decide. An answer is taken to come as soon as it can: now, or when the attempt starts.
func (s *narrator) foresee() (next prospects) {
	m, now := *s.m, s.now
	if m.Waiting() {
		if m.RefreshAt.After(now) {
			now = m.RefreshAt
		}
		// The jitter of an attempt follows from its uid, which nobody knows before it starts.
		next.jitter, m.Policy.Jitter = m.Policy.Jitter, 0
		decision := m.Wake(now, "foreseen")
		for decision.Event == model.EventSkipped { // due since long, and its policy skips what it missed
			m.State, now = decision.Next, decision.Next.RefreshAt
			decision = m.Wake(now, "foreseen")
		}
		if decision.Event != model.EventStart {
			next.GiveUp = prospectOf(now, decision)
			return next
		}
		m.State = decision.Next
		next.StartAt = optional(now)
	}
	if !m.Running() {
		return next
	}
	next.Success = prospectOf(now, m.Succeed(now, nil))
	next.Failure = prospectOf(now, m.Fail(policy.Failure{}, now))
	if begun, first := m.Begin(now, ""); first && next.StartAt != nil {
		m.State = begun.Next
	}
	at := m.DeadlineAt
	if at.Before(now) {
		at = now // nobody has noticed yet
	}
	next.Lost = prospectOf(at, m.Expire(at))
	return next
}

func prospectOf(at time.Time, decision model.Decision) *prospect {
	next := &decision.Next
	return &prospect{
		At: model.FormatTime(at), RefreshAt: optional(next.RefreshAt), Why: next.Why, AttemptNo: next.AttemptNo,
		Exhausted: decision.Exhausted, Disabled: next.Disabled, Reason: next.DisabledReason, at: at, refresh: next.RefreshAt,
	}
}

// future puts the prospects into words.
func (s *narrator) future(next prospects) []string {
	var lines []string
	switch {
	case next.GiveUp != nil:
		return append(lines, "next: at "+s.when(next.GiveUp.at)+" "+s.consequence(next.GiveUp))
	case next.Success == nil:
		return append(lines, "next: nothing, until it is saved, enabled or run by hand")
	case next.StartAt != nil:
		lines = append(lines, "next: an attempt starts at "+s.when(next.Success.at)+"; its answer is taken to come at once")
	default:
		lines = append(lines, "next: the running attempt ends")
	}
	retry := s.consequence(next.Failure)
	lost := s.consequence(next.Lost)
	if next.jitter > 0 {
		note := fmt.Sprintf("; jitter may move a delay by %g%%", 100*next.jitter)
		retry, lost = retry+note, lost+note
	}
	return append(lines,
		"  if it succeeds: "+s.consequence(next.Success),
		"  if it fails: "+retry,
		"  if it is lost, at "+s.when(next.Lost.at)+": "+lost)
}

func (s *narrator) consequence(p *prospect) string {
	switch {
	case p.Disabled:
		return fmt.Sprintf("disabled until the next update, %s; the owner reads %q", p.Why, p.Reason)
	case p.refresh.IsZero():
		return p.Why
	default:
		return "refresh at " + s.when(p.refresh) + ", " + p.Why
	}
}
