package main

import (
	"fmt"

	"github.com/refreshd/refreshd/model"
)

// forecastView is a forecast as -o json shows it. Null: that cannot happen.
type forecastView struct {
	StartAt *string     `json:"start_at"` // of the next attempt; null: it runs already, or none will
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

func viewForecast(f model.Forecast) forecastView {
	return forecastView{
		StartAt: optional(f.StartAt), Success: viewBranch(f.Success), Failure: viewBranch(f.Failure), Lost: viewBranch(f.Lost), GiveUp: viewBranch(f.GiveUp),
	}
}

func viewBranch(b model.Branch) *branchView {
	if !b.Possible() {
		return nil
	}
	return &branchView{model.FormatTime(b.At), optional(b.RefreshAt), b.Why, b.AttemptNo, b.Exhausted, b.Disabled, b.Reason}
}

// forecast puts a forecast into words.
func (s *narrator) forecast(f model.Forecast) []string {
	begins := "next: the running attempt ends"
	switch {
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
