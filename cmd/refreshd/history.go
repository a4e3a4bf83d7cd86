package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/refreshd/refreshd/model/policy"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/scripts"
)

func historyCommand(a *app) *cobra.Command {
	return draws(&cobra.Command{
		Use: "history UID", Short: "Show the attempts of a model that ended last, newest first", Args: oneUID,
		RunE: func(command *cobra.Command, uids []string) error {
			return a.withStore(command.Context(), func(store *scripts.Store) error {
				return a.history(command.Context(), store, uids[0])
			})
		},
	})
}

// attemptView is an ended attempt as -o json shows it: every field is always there.
type attemptView struct {
	AttemptUID string      `json:"attempt_uid"`
	AttemptNo  int         `json:"attempt_no"`
	StartedAt  *string     `json:"started_at"`
	EndedAt    *string     `json:"ended_at"`
	DurationMS int64       `json:"duration_ms"`
	Outcome    model.Event `json:"outcome"`
	Final      bool        `json:"final"`
	Exhausted  bool        `json:"retries_exhausted"`
	Changed    *bool       `json:"changed"`
	Reason     string      `json:"reason"`
	ErrorType  string      `json:"error_type"`
	Worker     string      `json:"worker"`
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
		Outcome: attempt.Outcome, Final: attempt.Final, Exhausted: attempt.Exhausted, Changed: attempt.Changed,
		Reason: attempt.Reason, ErrorType: attempt.ErrorType, Worker: attempt.Worker, DeadlineAt: optional(attempt.DeadlineAt),
		RetryAt: optional(attempt.RetryAt), PlannedAt: optional(attempt.PlannedAt), Overlap: attempt.Overlap,
		RefreshAt: optional(attempt.RefreshAt), RefreshWhy: attempt.Why,
	}
	if attempt.Overlap != "" {
		delay := attempt.Delay.Milliseconds()
		view.DelayMS, view.JitterMS = &delay, attempt.Jitter.Milliseconds()
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

func (a *app) history(ctx context.Context, store *scripts.Store, uid string) error {
	found, attempts, err := readPast(ctx, store, uid)
	if err != nil {
		return err
	}
	if slices.Contains(pictures, a.output) {
		return a.draw(historyChart(found, attempts))
	}
	if a.json() {
		for _, attempt := range attempts {
			if err := printJSONLine(a.stdout, viewAttempt(attempt)); err != nil {
				return err
			}
		}
		return nil
	}
	return a.historyTable(attempts)
}

func (a *app) historyTable(attempts []model.Attempt) error {
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ENDED AT\tATTEMPT\tOUTCOME\tTOOK\tNEXT\tBECAUSE\tREASON")
	for _, attempt := range attempts {
		result := string(attempt.Outcome)
		if attempt.Final {
			result += " (final)"
		}
		next := cmp.Or(model.FormatTime(attempt.RefreshAt), "-")
		cells := []string{model.FormatTime(attempt.EndedAt), ordinal(attempt.AttemptNo), result, attempt.Duration.String(), next, attempt.Why, attempt.Reason}
		for i, cell := range cells {
			cells[i] = plain(cell)
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
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
