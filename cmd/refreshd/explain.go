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

func explainCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "explain UID", Short: "Tell why a model refreshes when it does, and what happens next", Args: oneUID,
		Long: `Tell the story of a model: what it is and does, how its last attempts ended and what was decided then, with the numbers, and
what would follow if the next attempt succeeds, fails, or is never answered.`,
		RunE: a.onPart(a.explain),
	}
}

// explanation is a model explained, as -o json shows it.
type explanation struct {
	UID        string               `json:"uid"`
	Status     model.Status         `json:"status"`
	RefreshAt  time.Time            `json:"refresh_at"`
	RefreshWhy string               `json:"refresh_why"`
	GivesUpAt  time.Time            `json:"gives_up_at"`
	Missing    *explain.MissingRole `json:"missing"`
	// WaitsFor is the gate that the next start waits for, or will wait for, if nobody knows when that opens; "": none.
	WaitsFor model.Blocker `json:"waits_for"`
	Story    []string      `json:"story"`
	Next     forecastView  `json:"next"`
}

func (a *app) explain(ctx context.Context, store *store.Store, uids []string) error {
	e, err := explain.Read(ctx, store, uids[0])
	if err != nil {
		return err
	}
	record, forecast := e.Record, e.Forecast
	if a.json() {
		return a.printJSON(explanation{
			UID: record.UID, Status: e.Status, RefreshAt: record.RefreshAt, RefreshWhy: record.Why,
			GivesUpAt: record.GivesUpAt(), Missing: e.Missing(), WaitsFor: e.Gate, Story: e.Story(), Next: forecastView{
				StartAt: forecast.StartAt, Success: viewBranch(forecast.Success),
				Failure: viewBranch(forecast.Failure), Lost: viewBranch(forecast.TimedOut), GiveUp: viewBranch(forecast.GiveUp),
			},
		})
	}
	for _, line := range append(e.Story(), e.Next()...) {
		fmt.Fprintln(a.stdout, plain(line))
	}
	return nil
}

// forecastView is a forecast as -o json shows it. Null: that cannot happen.
type forecastView struct {
	StartAt time.Time   `json:"start_at"` // of the next attempt; null: it runs already, none will, or nobody knows when
	Success *branchView `json:"success"`
	Failure *branchView `json:"failure"`
	Lost    *branchView `json:"lost"`
	GiveUp  *branchView `json:"give_up"`
}

type branchView struct {
	At        string    `json:"at"`
	RefreshAt time.Time `json:"refresh_at"`
	Why       string    `json:"refresh_why"`
	AttemptNo int       `json:"attempt_no"`
	Exhausted bool      `json:"retries_exhausted"`
	Disabled  bool      `json:"disabled"`
	Reason    string    `json:"reason"`
}

func viewBranch(b model.Branch) *branchView {
	if !b.Possible() {
		return nil
	}
	return &branchView{model.FormatTime(b.At), b.RefreshAt, b.Why, b.AttemptNo, b.Exhausted, b.Disabled, b.Reason}
}
