package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/foresight/explain"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

func historyCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "history UID", Short: "Show the attempts of a model that ended last, newest first", Args: oneUID,
		Annotations: drawsPictures, RunE: a.onPart(a.history),
	}
}

// attemptView is an ended attempt as -o json shows it: every field is always there.
type attemptView struct {
	AttemptUID string      `json:"attempt_uid"`
	AttemptNo  int         `json:"attempt_no"`
	StartedAt  time.Time   `json:"started_at"`
	EndedAt    time.Time   `json:"ended_at"`
	DurationMS int64       `json:"duration_ms"`
	WaitMS     *int64      `json:"wait_ms"` // until its worker said that the work began, and from then on; null where it did not say so
	WorkMS     *int64      `json:"work_ms"`
	Outcome    model.Event `json:"outcome"`
	Times      int         `json:"times"` // in a row; more than 1 only of attempts that do not count
	Final      bool        `json:"final"`
	Exhausted  bool        `json:"retries_exhausted"`
	Changed    *bool       `json:"changed"`
	Reason     string      `json:"reason"`
	ErrorType  string      `json:"error_type"`
	Worker     string      `json:"worker"`
	Ignored    []string    `json:"ignored"` // fields of the worker's message that could not be used
	DeadlineAt time.Time   `json:"deadline_at"`

	// How the time of the retry came about; null where no retry was considered.
	DelayMS   *int64         `json:"delay_ms"`
	JitterMS  int64          `json:"jitter_ms"`
	RetryAt   time.Time      `json:"retry_at"`
	PlannedAt time.Time      `json:"planned_at"`
	Overlap   policy.Overlap `json:"overlap"`

	RefreshAt  time.Time `json:"refresh_at"`
	RefreshWhy string    `json:"refresh_why"`
}

func viewAttempt(attempt model.Attempt) attemptView {
	view := attemptView{
		AttemptUID: attempt.AttemptUID, AttemptNo: attempt.AttemptNo,
		StartedAt: attempt.StartedAt, EndedAt: attempt.EndedAt, DurationMS: attempt.Duration.Milliseconds(),
		Outcome: attempt.Outcome, Times: max(1, attempt.Times), Final: attempt.Final, Exhausted: attempt.Exhausted, Changed: attempt.Changed,
		Reason: attempt.Reason, ErrorType: attempt.ErrorType, Worker: attempt.Worker, DeadlineAt: attempt.DeadlineAt,
		Ignored: append([]string{}, attempt.Ignored...),
		RetryAt: attempt.RetryAt, PlannedAt: attempt.PlannedAt, Overlap: attempt.Overlap,
		RefreshAt: attempt.RefreshAt, RefreshWhy: attempt.Why,
	}
	if wait, work, told := attempt.Lengths(); told {
		view.WaitMS, view.WorkMS = new(wait.Milliseconds()), new(work.Milliseconds())
	}
	if attempt.Overlap != "" {
		view.DelayMS, view.JitterMS = new(attempt.Delay.Milliseconds()), attempt.Jitter.Milliseconds()
	}
	return view
}

func (a *app) history(ctx context.Context, store *store.Store, uids []string) error {
	found, attempts, err := explain.ReadPast(ctx, store, uids[0])
	if err != nil {
		return err
	}
	if a.output != outputTable && !a.json() {
		return a.draw(explain.Picture(found, attempts))
	}
	return a.printAttempts(attempts)
}

func (a *app) printAttempts(attempts []model.Attempt) error {
	views := make([]attemptView, len(attempts))
	for i, attempt := range attempts {
		views[i] = viewAttempt(attempt)
	}
	return printList(a, views, []any{"ENDED AT", "ATTEMPT", "OUTCOME", "WAIT", "TOOK", "NEXT", "BECAUSE", "REASON"}, func(v *attemptView) []any {
		outcome := string(v.Outcome) + mark(v.Final, " (final)") + mark(v.Times > 1, fmt.Sprintf(" (%d in a row)", v.Times))
		wait, took := "-", time.Duration(v.DurationMS)*time.Millisecond
		if v.WaitMS != nil {
			wait, took = (time.Duration(*v.WaitMS) * time.Millisecond).String(), time.Duration(*v.WorkMS)*time.Millisecond
		}
		return []any{v.EndedAt, ordinal(v.AttemptNo), outcome, wait, took, v.RefreshAt, v.RefreshWhy, v.Reason}
	})
}

// ordinal names an attempt by how many retries went before it.
func ordinal(attemptNo int) string {
	if attemptNo < 2 {
		return "Initial"
	}
	return fmt.Sprintf("Retry #%d", attemptNo-1)
}
