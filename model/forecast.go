package model

import (
	"time"

	"github.com/refreshd/refreshd/model/policy"
)

// Forecast is a possible future of a model: of the attempt that runs, or else of the next one.
type Forecast struct {
	// StartAt is when the next attempt starts; zero: one runs already, or none will start.
	StartAt time.Time
	// Jitter is the share of a delay that may still vary: it follows from the uid of the next attempt.
	Jitter float64
	// By is the last thing that delays the next attempt beyond its time; empty: nothing does.
	By Blocker
	// The attempt succeeds or fails as soon as it can, or it is lost: nobody answers before its deadline.
	Success, Failure, TimedOut Branch
	// GiveUp: no attempt comes before the end of the give-up window.
	GiveUp Branch
	// RuleError is the error of a rule, as in Model.
	RuleError string
}

// Branch is one way that a forecast may go. The zero value is a way that it cannot go.
type Branch struct {
	At        time.Time `json:"at"`         // when it happens
	RefreshAt time.Time `json:"refresh_at"` // its result, as in State
	Why       string    `json:"refresh_why"`
	AttemptNo int       `json:"attempt_no"`
	Exhausted bool      `json:"retries_exhausted"` // the retries are used up
	Disabled  bool      `json:"disabled"`
	Reason    string    `json:"reason"` // for the owner of a disabled model
	Trigger   Trigger   `json:"-"`      // the kind of Why
	Ended     *Attempt  `json:"-"`      // the attempt that ends, with the decision then; nil: none does
}

// Possible reports whether the forecast may go this way.
func (b Branch) Possible() bool { return !b.At.IsZero() }

// Forecast returns the decision of the definition in force, if an answer came at once: now, or when the attempt starts. The model stays
// unchanged.
func (m *Model) Forecast(now time.Time) (f Forecast) {
	next := *m
	defer func() { f.RuleError = next.RuleError }()
	if next.Waiting() {
		if next.RefreshAt.After(now) {
			now = next.RefreshAt
		}
		f.Jitter, next.Policy.Jitter = next.Policy.Jitter, 0
		decision := next.StartOrSkip(now, "forecast")
		for decision.Event == EventSkipped { // due since long, and its policy skips missed ones, or its retry window has closed
			next.State, now = decision.Next, decision.Next.RefreshAt
			decision = next.StartOrSkip(now, "forecast")
		}
		if decision.Event != EventStart {
			f.GiveUp = branch(now, decision)
			return f
		}
		next.State, f.StartAt = decision.Next, now
	}
	if !next.Running() {
		return f
	}
	f.Success = branch(now, next.Succeed(now, nil))
	f.Failure = branch(now, next.Fail(policy.Failure{}, now))
	if begun, first := next.Begin(now, ""); first && !f.StartAt.IsZero() {
		next.State = begun.Next
	}
	lostAt := next.ExpiresAt()
	if lostAt.Before(now) {
		lostAt = now // nobody has noticed yet
	}
	f.TimedOut = branch(lostAt, next.Expire(lostAt))
	return f
}

// StartsAt is when the next attempt of a waiting model starts, now at the earliest; zero: none will, or the model is running or parked.
func (m *Model) StartsAt(now time.Time) time.Time {
	switch {
	case !m.Waiting() || m.Parked():
		return time.Time{}
	case m.endsWindow() || m.Policy.Misfire.Limited || m.Window != nil:
		return m.Forecast(now).StartAt
	case m.RefreshAt.After(now):
		return m.RefreshAt
	default:
		return now
	}
}

func branch(at time.Time, decision Decision) Branch {
	next := &decision.Next
	return Branch{
		At: at, RefreshAt: next.RefreshAt, Why: next.Why, AttemptNo: next.AttemptNo,
		Exhausted: decision.Exhausted, Disabled: next.Disabled, Reason: next.DisabledReason, Trigger: next.Trigger, Ended: decision.Ended,
	}
}
