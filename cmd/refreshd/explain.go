package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/scripts"
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
	UID        string       `json:"uid"`
	Status     model.Status `json:"status"`
	RefreshAt  *string      `json:"refresh_at"`
	RefreshWhy string       `json:"refresh_why"`
	GivesUpAt  *string      `json:"gives_up_at"`
	Missing    *missingView `json:"missing"`
	// WaitsFor is the gate that the next start waits for, or will wait for, if nobody knows when that opens; "": none.
	WaitsFor model.Gate   `json:"waits_for"`
	Story    []string     `json:"story"`
	Next     forecastView `json:"next"`
}

func (a *app) explain(ctx context.Context, store *scripts.Store, uids []string) error {
	found, attempts, err := readPast(ctx, store, uids[0])
	if err != nil {
		return err
	}
	if err := found.readSigns(ctx, store); err != nil {
		return err
	}
	record := found.record
	s := &narrator{shown: found, m: &record.Model, zone: zoneOf(&record.Model)}
	if s.steered, err = store.Steered(ctx, s.m, s.now); err != nil {
		return err
	}
	forecast, gate := s.steered.Gates.Forecast(s.m, s.now)
	s.gate = gate
	if found.status == model.StatusQueued || found.status == model.StatusDue {
		if s.place, err = store.PlaceInLine(ctx, record); err != nil {
			return err
		}
	}
	if id := record.ErrorID; id != "" {
		if s.alike, err = store.FailingAlike(ctx, id); err != nil {
			return err
		}
	}
	s.m.Fault = cmp.Or(s.m.Fault, forecast.RuleError)
	if a.json() {
		return a.printJSON(explanation{
			UID: record.UID, Status: found.status, RefreshAt: optional(record.RefreshAt), RefreshWhy: record.Why,
			GivesUpAt: optional(record.GivesUpAt()), Missing: found.missing(), WaitsFor: gate, Story: s.story(attempts), Next: forecastView{
				StartAt: optional(forecast.StartAt), Success: viewBranch(forecast.Success),
				Failure: viewBranch(forecast.Failure), Lost: viewBranch(forecast.Lost), GiveUp: viewBranch(forecast.GiveUp),
			},
		})
	}
	for _, line := range append(s.story(attempts), s.forecast(forecast)...) {
		fmt.Fprintln(a.stdout, plain(line))
	}
	return nil
}

// forecastView is a forecast as -o json shows it. Null: that cannot happen.
type forecastView struct {
	StartAt *string     `json:"start_at"` // of the next attempt; null: it runs already, none will, or nobody knows when
	Success *branchView `json:"success"`
	Failure *branchView `json:"failure"`
	Lost    *branchView `json:"lost"`
	GiveUp  *branchView `json:"give_up"`
}

type branchView struct {
	At        string  `json:"at"`
	RefreshAt *string `json:"refresh_at"`
	Why       string  `json:"refresh_why"`
	AttemptNo int     `json:"attempt_no"`
	Exhausted bool    `json:"retries_exhausted"`
	Disabled  bool    `json:"disabled"`
	Reason    string  `json:"reason"`
}

func viewBranch(b model.Branch) *branchView {
	if !b.Possible() {
		return nil
	}
	return &branchView{model.FormatTime(b.At), optional(b.RefreshAt), b.Why, b.AttemptNo, b.Exhausted, b.Disabled, b.Reason}
}

// narrator tells of one model at one instant, on the clock of its schedule.
type narrator struct {
	shown
	m     *model.Model
	zone  *time.Location
	place scripts.InLine    // of a queued attempt
	alike scripts.Signature // by which the model is failing

	steered scripts.Steered
	gate    model.Gate // that the next start waits for, of which nobody knows when it opens; empty: none
}

// clock is a time of day, with its day if that is not today.
func (s *narrator) clock(at time.Time) string {
	at = at.In(s.zone)
	layout := "15:04"
	if at.Second() > 0 {
		layout = time.TimeOnly
	}
	switch now := s.now.In(s.zone); {
	case at.Format(time.DateOnly) == now.Format(time.DateOnly):
	case at.Year() == now.Year():
		layout = "Mon 2 Jan " + layout
	default:
		layout = "2 Jan 2006 " + layout
	}
	return at.Format(layout)
}

// when is a time with its distance from now.
func (s *narrator) when(at time.Time) string {
	return s.clock(at) + " (" + distance(at, s.now) + ")"
}

// forecast puts a forecast into words.
func (s *narrator) forecast(f model.Forecast) []string {
	begins := "next: the running attempt ends"
	switch {
	case s.gate != "" && f.GiveUp.Possible():
		return []string{"next: when " + string(s.gate) + " lets it go, " + s.branch(f.GiveUp)}
	case s.gate != "":
		begins = "next: an attempt starts when " + string(s.gate) + " lets it go, nobody knows when; as if that were as soon as it can be:"
	case f.GiveUp.Possible():
		return []string{"next: at " + s.when(f.GiveUp.At) + " " + s.branch(f.GiveUp)}
	case !f.Success.Possible():
		return []string{"next: nothing, until it is saved, enabled or run by hand"}
	case !f.StartAt.IsZero():
		begins = "next: an attempt starts at " + s.when(f.StartAt) + "; its answer is taken to come at once"
	}
	note := ""
	if f.Jitter > 0 {
		note = fmt.Sprintf("; jitter may move a delay by %g%%", 100*f.Jitter)
	}
	return []string{
		begins,
		"  if it succeeds: " + s.branch(f.Success),
		"  if it fails: " + s.branch(f.Failure) + note,
		"  if it is lost, at " + s.when(f.Lost.At) + ": " + s.branch(f.Lost) + note,
	}
}

func (s *narrator) branch(b model.Branch) string {
	switch {
	case b.Disabled:
		return fmt.Sprintf("disabled until the next update, %s; the owner reads %q", b.Why, b.Reason)
	case b.RefreshAt.IsZero():
		return b.Why
	default:
		return "refresh at " + s.when(b.RefreshAt) + ", " + b.Why
	}
}
