package model

import (
	"cmp"
	"time"
)

// State is refreshd's memory of one model between two transitions. Times are UTC with whole milliseconds; a zero
// time, an empty string and false all mean "absent". Redis and JSON name the fields in snake case.
//
// Invariants: AttemptUID, StartedAt and DeadlineAt are present together or not at all; a disabled model has neither RefreshAt nor an attempt.
type State struct {
	// RefreshAt is when the next attempt starts. While an attempt runs, it is the result of a timeout at the deadline.
	RefreshAt time.Time `json:"refresh_at"`
	// Why explains RefreshAt in at most 60 bytes; Trigger is its kind.
	Why     string `json:"refresh_why"`
	Trigger Trigger
	// PlannedFor is the planned refresh of an attempt that nobody has taken yet: it may be missed. Only if the policy skips missed ones.
	PlannedFor time.Time
	// Phase shifts each planned refresh in place of the spread of its policy; 0: none. `refreshd level` sets it, a save keeps it.
	Phase time.Duration
	// NotBefore is the earliest start that a worker has asked for with retry_after. Only a hand goes below.
	NotBefore time.Time `json:"not_before"`

	// Reserved are the keys, separated by spaces, in which RefreshAt is a reserved slot.
	Reserved string
	// Counted are the limits and the circuit that count the running attempt, separated by spaces.
	Counted string
	// ParkedBy is the blocker of the model; RefreshAt is then when it would have started. ParkedSince is since when.
	ParkedBy    Blocker   `json:"parked_by"`
	ParkedSince time.Time `json:"parked_since"`

	AttemptUID string    `json:"attempt_uid"` // fence of the running attempt
	AttemptNo  int       `json:"attempt_no"`  // runs since the last success, 1 is the first
	StartedAt  time.Time `json:"started_at"`  // last start
	DeadlineAt time.Time `json:"deadline_at"` // when the running attempt counts as timed out
	// EntryDeadlineAt and EntryPlannedAt are part of the entry of the running attempt: its first deadline, and the next planned refresh or zero.
	EntryDeadlineAt, EntryPlannedAt time.Time
	// EntryDueAt is the time that the running attempt is for.
	EntryDueAt time.Time
	// Fence is the number of the last attempt or more: a success raises it to its own time.
	Fence int64
	// Ticket numbers the attempt that was started last in the order in which all were put in the input list, from 1; 0: not known.
	Ticket int
	// TakenAt is the latest time at which the running attempt was taken, known from the head of the input list.
	TakenAt time.Time
	// ProcessingAt is when a worker said that the work really began.
	ProcessingAt time.Time `json:"processing_at"`
	Worker       string    `json:"worker"` // who said so
	// SilentAfter is how long that worker may be silent, as it has announced signs of life; 0: for as long as it wants. HeardAt is its last one.
	SilentAfter time.Duration
	HeardAt     time.Time
	// Again: the running attempt works on old data, and the model is due again at its end.
	Again bool `json:"again"`
	// Outdated: the payload of the running attempt was replaced after a worker had taken it; its result does not count.
	Outdated bool `json:"outdated"`

	// Unpublished: the last result of a held model was not published. After it is accepted, guards doubt nothing until a success.
	Unpublished bool

	// Usual has the usual values of the numbers that guards compare, at the last good result, as a JSON object; empty: not known.
	Usual string

	// Guarded marks a running attempt whose result a guard may keep from being published: its worker should ask before.
	Guarded bool

	// Traced marks a running attempt whose entry names its trace.
	Traced bool

	Disabled       bool `json:"refresh_disabled_until_update"` // no attempt is started
	DisabledAt     time.Time
	DisabledReason string  `json:"refresh_disabled_user_friendly_reason"` // for the owner
	DisabledBy     Stopper // who did it; empty: it is enabled
	DisabledWho    string  `json:"refresh_disabled_who"` // the name of the person, if known

	UserFriendlyStatus string `json:"user_friendly_status"` // last status text of a worker, for the owner
	Progress           int    `json:"progress"`             // last progress of a worker, 0-100 percent

	LastSuccessAt time.Time `json:"last_success_at"`
	FailingSince  time.Time `json:"failing_since"` // first failure since the last success
	// FingerprintID identifies the last failure while the model is failing: its id, or fingerprint.Other, as commit.lua decides.
	FingerprintID  string
	FinalFailureAt time.Time `json:"final_failure_at"` // last final failure since the last success: its end is a recovery
	LastAttemptUID string    `json:"last_attempt_uid"` // of the attempt that ended last, not superseded: a duplicate has it, a stale result has not
	Deferrals      int       `json:"deferrals"`        // postponed, interrupted or not begun attempts in a row
	Deaths         int       `json:"deaths"`           // workers that died over the model since one has said how an attempt ended
	// TryingSince is from when the give-up window counts while that is not the last success: the first start of a model that
	// never succeeded, or the update that began anew.
	TryingSince time.Time `json:"trying_since"`

	// Freshness is the last reported one; see Watch. StaleAt is its next change, or, for a stale model, since when it is stale.
	Freshness Freshness `json:"freshness"`
	StaleAt   time.Time `json:"stale_at"`
	// FreshSince is when a model that never succeeded began to be watched.
	FreshSince time.Time `json:"fresh_since"`

	// Counts over the life of the model. Only attempts that ended in success or failure count.
	TotalRetries      int // attempts that were not the first of their cycle
	SuccessfulRetries int // retries that succeeded
	RetriedCycles     int // cycles that needed a retry
}

// Running reports whether an attempt is queued or processed.
func (s *State) Running() bool { return s.AttemptUID != "" }

// Waiting reports whether the model is enabled, idle and has a time to start: exactly then it is in the due set, in the urgent one, or
// among the parked.
func (s *State) Waiting() bool { return !s.Disabled && s.AttemptUID == "" && !s.RefreshAt.IsZero() }

// Parked reports whether the model waits for a blocker instead of its time.
func (s *State) Parked() bool { return s.Waiting() && s.ParkedBy != "" }

// RunAhead lowers the score of a run below its refresh_at: negative until the year 2070, and so before all other urgent models.
const RunAhead = 100 * 365 * 24 * time.Hour

// Scores are the times of a model in the sorted sets of its queue; zero: it is not a member.
type Scores struct {
	Due, Urgent, Parked time.Time // when it starts or would; in one of them at most
	Disabled            time.Time // when it was disabled
	StaleAt             time.Time // when its freshness changes next
	Late                time.Time // when it becomes stale; Never: it has never succeeded, and is not late
	Stale               time.Time // since when it is stale
}

// Scores returns the scores of a model in this state.
func (s *State) Scores() (at Scores) {
	switch {
	case s.Disabled: // a time that cannot be read is zero
		at.Disabled = cmp.Or(s.DisabledAt, time.UnixMilli(1).UTC())
	case !s.Waiting():
	case s.ParkedBy != "":
		at.Parked = s.RefreshAt
	case s.Trigger == TriggerRun: // a run by hand precedes the others
		at.Urgent = s.RefreshAt.Add(-RunAhead)
	case s.Trigger.ByHand():
		at.Urgent = s.RefreshAt
	default:
		at.Due = s.RefreshAt
	}
	switch at.StaleAt = s.StaleAt; s.Freshness {
	case FreshnessLate:
		at.Late = s.StaleAt
	case FreshnessNever:
		at.Late = Never
	case FreshnessStale:
		at.StaleAt, at.Stale = time.Time{}, s.StaleAt
	}
	return at
}

// Due reports whether an attempt is to be started at now.
func (s *State) Due(now time.Time) bool {
	return s.Waiting() && s.ParkedBy == "" && !s.RefreshAt.After(now)
}

// ExpectsSigns reports whether the running attempt counts as lost when its worker is silent. That is a part of the state, so that a changed policy
// changes no attempt that has begun.
func (s *State) ExpectsSigns() bool { return s.SilentAfter > 0 }

// ExpiresAt is when the running attempt fails if nothing is heard: at its deadline, or after its silence. It is its score in the running set.
func (s *State) ExpiresAt() time.Time {
	silentAt := s.HeardAt.Add(s.SilentAfter)
	if !s.ExpectsSigns() || s.DeadlineAt.Before(silentAt) {
		return s.DeadlineAt
	}
	return silentAt
}

// Status names the status of a model.
type Status string

// The statuses of a model.
const (
	StatusDisabled   Status = "disabled"   // until the next update, or until it is enabled if a hand did it
	StatusScheduled  Status = "scheduled"  // waits for refresh_at
	StatusDue        Status = "due"        // refresh_at has come, no dispatcher has taken it yet
	StatusQueued     Status = "queued"     // the attempt is in the input list
	StatusProcessing Status = "processing" // a worker has taken the attempt
	StatusParked     Status = "parked"     // waits for a hold, a calendar, a limit or a circuit
	StatusFinished   Status = "finished"   // nothing more to do until a save or a run
	StatusBroken     Status = "broken"     // where a model should be, something else is stored
)

// Status derives the status at now. queued says whether the attempt still is in the input list.
func (s *State) Status(now time.Time, queued bool) Status {
	switch {
	case s.Disabled:
		return StatusDisabled
	case s.Running() && queued && s.ProcessingAt.IsZero():
		return StatusQueued
	case s.Running():
		return StatusProcessing
	case s.RefreshAt.IsZero():
		return StatusFinished
	case s.Parked():
		return StatusParked
	case s.Due(now):
		return StatusDue
	default:
		return StatusScheduled
	}
}

func (s *State) endAttempt() {
	s.LastAttemptUID = s.AttemptUID
	s.AttemptUID, s.Worker = "", ""
	s.StartedAt, s.DeadlineAt, s.ProcessingAt = time.Time{}, time.Time{}, time.Time{}
	s.SilentAfter, s.HeardAt = 0, time.Time{}
	s.TakenAt = time.Time{}
	s.EntryDeadlineAt, s.EntryPlannedAt, s.EntryDueAt = time.Time{}, time.Time{}, time.Time{}
	s.Again, s.Outdated, s.Traced, s.Guarded = false, false, false, false
	s.Counted = ""
}

// enable begins the cycle of attempts and the give-up window anew. The model is failing until a success, no matter who enables it.
func (s *State) enable(now time.Time) {
	s.Disabled, s.DisabledAt, s.DisabledReason, s.DisabledBy, s.DisabledWho = false, time.Time{}, "", "", ""
	s.AttemptNo, s.Deferrals, s.Deaths, s.Unpublished = 0, 0, 0, false
	if !s.failingSince().IsZero() {
		s.TryingSince = now
	}
}

// Trigger is why refresh_at was set; while an attempt runs, why that one was started.
type Trigger string

const (
	// TriggerPlanned is a planned refresh, also one that replaces a retry, and its substitute: the start of a one-shot
	// that was saved.
	TriggerPlanned Trigger = ""
	// TriggerRetry is a retry after a failure. It is never skipped.
	TriggerRetry Trigger = "retry"
	// TriggerChange is a save that wants a refresh at once: `refresh: now`, a cure, a new payload while an attempt ran. It is urgent.
	TriggerChange Trigger = "change"
	// TriggerHand is a bulk run. It is urgent too.
	TriggerHand Trigger = "hand"
	// TriggerRun is a run of one model: it is urgent too, and starts before the other two, however many these are.
	TriggerRun Trigger = "run"
	// TriggerDeferred is an attempt that is tried again because it was postponed or interrupted, or not begun.
	TriggerDeferred Trigger = "deferred"
	// TriggerGiveUp is the end of the give-up window: nothing starts then.
	TriggerGiveUp Trigger = "give_up"
)

// started is the trigger of an attempt that starts although the model waited for the end of its window.
func (c Trigger) started() Trigger {
	if c == TriggerGiveUp {
		return TriggerRetry
	}
	return c
}

func (s *State) wait(at time.Time, trigger Trigger, why string) {
	s.RefreshAt, s.Trigger, s.Why = at, trigger, why
	s.PlannedFor = time.Time{}
	s.Unpublished = s.Unpublished && s.ParkedBy != BySuspect
	s.ParkedBy, s.ParkedSince, s.Reserved = "", time.Time{}, ""
}

// dueNow makes the model due before the backlog. A person asks, so NotBefore does not hold.
func (s *State) dueNow(now time.Time, why string) {
	trigger := TriggerChange
	if s.Urgent() {
		trigger = s.Trigger
	}
	s.wait(now, trigger, why)
	s.NotBefore = time.Time{}
}

// Urgent reports whether the model waits for a start that somebody wants at once: exactly then it is in the urgent set.
func (s *State) Urgent() bool { return s.Waiting() && s.ParkedBy == "" && s.Trigger.ByHand() }

// ByHand reports whether somebody wants the start at once.
func (c Trigger) ByHand() bool { return c == TriggerChange || c == TriggerHand || c == TriggerRun }

// endsWindow reports whether the model waits for the end of its give-up window.
func (s *State) endsWindow() bool { return s.Trigger == TriggerGiveUp }

// Stopper is who disabled a model.
type Stopper string

// The two that may disable a model.
const (
	StoppedByHand   Stopper = "hand"   // until it is enabled, whatever is saved meanwhile
	StoppedByPolicy Stopper = "policy" // a final failure: until a save that changes something
)
