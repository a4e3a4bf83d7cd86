package main

import (
	"cmp"
	"context"
	"fmt"

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
	StartedAt  *string     `json:"started_at"`
	EndedAt    *string     `json:"ended_at"`
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
	DeadlineAt *string     `json:"deadline_at"`

	// How the time of the retry came about; null where no retry was considered.
	DelayMS   *int64         `json:"delay_ms"`
	JitterMS  int64          `json:"jitter_ms"`
	RetryAt   *string        `json:"retry_at"`
	PlannedAt *string        `json:"planned_at"`
	Overlap   policy.Overlap `json:"overlap"`

	RefreshAt  *string `json:"refresh_at"`
	RefreshWhy string  `json:"refresh_why"`
}

func viewAttempt(attempt model.Attempt) attemptView {
	view := attemptView{
		AttemptUID: attempt.AttemptUID, AttemptNo: attempt.AttemptNo,
		StartedAt: optional(attempt.StartedAt), EndedAt: optional(attempt.EndedAt), DurationMS: attempt.Duration.Milliseconds(),
		Outcome: attempt.Outcome, Times: max(1, attempt.Times), Final: attempt.Final, Exhausted: attempt.Exhausted, Changed: attempt.Changed,
		Reason: attempt.Reason, ErrorType: attempt.ErrorType, Worker: attempt.Worker, DeadlineAt: optional(attempt.DeadlineAt),
		Ignored: append([]string{}, attempt.Ignored...),
		RetryAt: optional(attempt.RetryAt), PlannedAt: optional(attempt.PlannedAt), Overlap: attempt.Overlap,
		RefreshAt: optional(attempt.RefreshAt), RefreshWhy: attempt.Why,
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
	switch a.output {
	case outputTable:
		return a.historyTable(attempts)
	case outputJSON:
		return printJSONLines(a.stdout, attempts, func(attempt *model.Attempt) any { return viewAttempt(*attempt) })
	default:
		return a.draw(explain.Picture(found, attempts))
	}
}

func (a *app) historyTable(attempts []model.Attempt) error {
	table := a.newTable("ENDED AT", "ATTEMPT", "OUTCOME", "WAIT", "TOOK", "NEXT", "BECAUSE", "REASON")
	for _, attempt := range attempts {
		result := string(attempt.Outcome)
		if attempt.Final {
			result += " (final)"
		}
		if attempt.Times > 1 {
			result += fmt.Sprintf(" (%d in a row)", attempt.Times)
		}
		next := cmp.Or(model.FormatTime(attempt.RefreshAt), "-")
		waited := "-"
		wait, took, told := attempt.Lengths()
		if told {
			waited = wait.String()
		}
		table.Row(model.FormatTime(attempt.EndedAt), ordinal(attempt.AttemptNo), result, waited, took.String(), next, attempt.Why, attempt.Reason)
	}
	return table.Flush()
}

// ordinal names an attempt by how many retries went before it.
func ordinal(attemptNo int) string {
	if attemptNo < 2 {
		return "Initial"
	}
	return fmt.Sprintf("Retry #%d", attemptNo-1)
}
