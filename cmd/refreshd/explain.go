package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/foresight/explain"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

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
