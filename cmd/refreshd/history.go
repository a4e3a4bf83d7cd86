package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/chart"
	"github.com/refreshd/refreshd/internal/simulate"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/scripts"
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
	if attempt.Overlap != "" {
		view.DelayMS, view.JitterMS = new(attempt.Delay.Milliseconds()), attempt.Jitter.Milliseconds()
	}
	return view
}

// readPast reads one model that must be stored, and its attempts that ended last, newest first.
func readPast(ctx context.Context, store *scripts.Store, uid string) (shown, []model.Attempt, error) {
	found, err := readModel(ctx, store, uid)
	if err != nil {
		return shown{}, nil, err
	}
	attempts, err := store.History(ctx, uid)
	return found, attempts, err
}

func (a *app) history(ctx context.Context, store *scripts.Store, uids []string) error {
	found, attempts, err := readPast(ctx, store, uids[0])
	if err != nil {
		return err
	}
	switch a.output {
	case outputTable:
		return a.historyTable(attempts)
	case outputJSON:
		for _, attempt := range attempts {
			if err := printJSONLine(a.stdout, viewAttempt(attempt)); err != nil {
				return err
			}
		}
		return nil
	default:
		return a.draw(historyChart(found, attempts))
	}
}

func (a *app) historyTable(attempts []model.Attempt) error {
	table := a.newTable("ENDED AT", "ATTEMPT", "OUTCOME", "TOOK", "NEXT", "BECAUSE", "REASON")
	for _, attempt := range attempts {
		result := string(attempt.Outcome)
		if attempt.Final {
			result += " (final)"
		}
		if attempt.Times > 1 {
			result += fmt.Sprintf(" (%d in a row)", attempt.Times)
		}
		next := cmp.Or(model.FormatTime(attempt.RefreshAt), "-")
		ended, took := model.FormatTime(attempt.EndedAt), attempt.Duration.String()
		table.row(ended, ordinal(attempt.AttemptNo), result, took, next, attempt.Why, attempt.Reason)
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

// historyChart draws what happened to a model: the attempts that ended last, the one that runs, and its end by itself.
func historyChart(s shown, attempts []model.Attempt) chart.Chart {
	drawing := chart.Chart{Title: s.record.UID, Location: zoneOf(&s.record.Model), Events: chart.FromHistory(attempts)}
	if count := len(drawing.Events); count > 0 {
		drawing.End = drawing.Events[count-1].At
	}
	switch r := s.record; {
	case r.Running():
		drawing.Events = append(drawing.Events, running(&r.Model))
		drawing.End = s.now
	case r.Disabled && r.FinalFailureAt.After(drawing.End):
		// The give-up window ended while the model waited.
		drawing.Events = append(drawing.Events, chart.Event{At: r.FinalFailureAt, Kind: chart.Disabled, AttemptNo: r.AttemptNo, Why: r.Why})
		drawing.End = r.FinalFailureAt
	}
	if len(drawing.Events) > 0 {
		drawing.Start = drawing.Events[0].At
		drawing.Planned = simulate.Planned(&s.record.Model, drawing.Start, drawing.End)
	}
	return drawing
}

// running is the beginning of the attempt that runs.
func running(m *model.Model) chart.Event {
	event := chart.Event{
		At: m.StartedAt, Kind: chart.Start, AttemptNo: m.AttemptNo, RefreshAt: m.RefreshAt, DeadlineAt: m.DeadlineAt, Why: m.Why,
	}
	if m.AttemptNo > 1 {
		event.Kind = chart.Retry
	}
	return event
}
