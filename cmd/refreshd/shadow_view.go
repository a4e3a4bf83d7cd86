package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/refreshd/refreshd/cmd/refreshd/internal/print"
	"github.com/refreshd/refreshd/internal/foresight/shadow"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
)

// meanings are the kinds of differences, for people.
var meanings = map[shadow.Kind]string{
	shadow.Earlier: "we would have started earlier", shadow.Later: "we would have started later",
	shadow.Missed: "planned, and not started", shadow.NotRetried: "we would have retried",
	shadow.Retried: "it was retried; we would have waited for the planned refresh", shadow.Twice: "it ran again beside its last run",
	shadow.Unplanned: "started, and not planned", shadow.GaveUp: "it went on; we would have disabled the model",
	shadow.TooLong: "it ran for longer than its timeout", shadow.Unknown: "no such model is defined", shadow.Unreadable: "the line is no run",
}

// differenceView is one difference, as -o json shows it: every field is always there.
type differenceView struct {
	Kind       string      `json:"kind"` // difference
	Difference shadow.Kind `json:"difference"`
	Line       int         `json:"line"` // 0: there was no run
	UID        string      `json:"uid"`
	Old        time.Time   `json:"old"`
	Ours       time.Time   `json:"ours"`
	Seconds    float64     `json:"seconds"` // how far apart; 0: that says nothing
	Why        string      `json:"why"`
}

func viewDifference(d shadow.Difference) differenceView {
	return differenceView{
		Kind: "difference", Difference: d.Kind, Line: d.Line, UID: d.UID, Old: d.Old, Ours: d.Ours, Seconds: d.By.Seconds(), Why: d.Why,
	}
}

func (a *app) tellDifference(d shadow.Difference, zone *time.Location) {
	if a.json() {
		_ = print.JSONLine(a.stdout, viewDifference(d)) // a command that cannot print has nobody to tell
		return
	}
	fmt.Fprintln(a.stdout, plain(differenceText(d, zone)))
}

func differenceText(d shadow.Difference, zone *time.Location) string {
	parts := []string{string(d.Kind)}
	if d.UID != "" {
		parts = append(parts, d.UID)
	}
	if d.Line > 0 {
		parts = append(parts, fmt.Sprintf("line %d", d.Line))
	}
	for _, at := range []struct {
		name string
		time time.Time
	}{{"old", d.Old}, {"ours", d.Ours}} {
		if !at.time.IsZero() {
			parts = append(parts, at.name+" "+at.time.In(zone).Format("2006-01-02 15:04:05"))
		}
	}
	if d.By > 0 {
		parts = append(parts, "by "+document.FormatDuration(d.By))
	}
	if d.Why != "" {
		parts = append(parts, "("+d.Why+")")
	}
	return strings.Join(parts, " ")
}

// shadowedModel is a model that differs, as -o json shows it.
type shadowedModel struct {
	Kind        string              `json:"kind"` // model
	UID         string              `json:"uid"`
	Runs        int                 `json:"runs"`
	Agreed      int                 `json:"agreed"`
	Differences map[shadow.Kind]int `json:"differences"`
}

// shadowView is the sum of a comparison, as -o json shows it on the last line.
type shadowView struct {
	Kind      string      `json:"kind"` // summary
	Models    int         `json:"models"`
	NoRuns    int         `json:"no_runs"`   // of these, without any run
	Differing int         `json:"differing"` // models
	Runs      int         `json:"runs"`
	Agreed    int         `json:"agreed"`
	Unjudged  int         `json:"unjudged"` // runs of models without a schedule
	From      time.Time   `json:"from"`
	To        time.Time   `json:"to"`
	Kinds     []shadowSum `json:"kinds"`
}

type shadowSum struct {
	Difference shadow.Kind    `json:"difference"`
	Count      int            `json:"count"`
	Models     int            `json:"models"`
	Furthest   differenceView `json:"furthest"`
}

// mostShadowed is how many models a table shows.
const mostShadowed = 20

// showShadow prints what came of a comparison, and ends with errDiffers if anything differs.
func (a *app) showShadow(r *shadow.Report, zone *time.Location, within time.Duration) error {
	show := a.tableShadow
	if a.json() {
		show = a.linesShadow
	}
	if err := show(r, zone, within); err != nil {
		return err
	}
	if r.Differs() {
		return errDiffers
	}
	if r.Runs == 0 {
		return errors.New("expected a log with at least one run, found none: it proves nothing")
	}
	return nil
}

func (a *app) linesShadow(r *shadow.Report, _ *time.Location, _ time.Duration) error {
	for _, m := range r.Differing {
		if err := print.JSONLine(a.stdout, shadowedModel{"model", m.UID, m.Runs, m.Agreed, m.Counts}); err != nil {
			return err
		}
	}
	v := shadowView{
		Kind: "summary", Models: r.Models, NoRuns: r.NoRuns, Differing: len(r.Differing), Runs: r.Runs, Agreed: r.Agreed, Unjudged: r.Unjudged,
		From: r.From, To: r.To, Kinds: []shadowSum{},
	}
	for _, sum := range r.Sums {
		v.Kinds = append(v.Kinds, shadowSum{sum.Kind, sum.Count, sum.Models, viewDifference(sum.Most)})
	}
	return print.JSONLine(a.stdout, v)
}

func (a *app) tableShadow(r *shadow.Report, zone *time.Location, within time.Duration) error {
	fmt.Fprintf(a.stdout, "%s of %s", words.Count(r.Runs, "run", "runs"), words.Count(r.Models, "model", "models"))
	if !r.From.IsZero() {
		fmt.Fprintf(a.stdout, ", %s to %s", r.From.In(zone).Format("2006-01-02 15:04 MST"), r.To.In(zone).Format("2006-01-02 15:04 MST"))
	}
	fmt.Fprintf(a.stdout, "; %d agree within %s", r.Agreed, document.FormatDuration(within))
	if r.Unjudged > 0 {
		fmt.Fprintf(a.stdout, "; %d of models without a schedule", r.Unjudged)
	}
	if r.NoRuns > 0 {
		fmt.Fprintf(a.stdout, "; %s without any run", words.Count(r.NoRuns, "model", "models"))
	}
	fmt.Fprintln(a.stdout)
	if !r.Differs() {
		return nil
	}
	fmt.Fprintln(a.stdout)
	kinds := a.newTable("KIND", "COUNT", "MODELS", "MEANS", "FURTHEST, OR FIRST")
	for _, sum := range r.Sums {
		most := strings.TrimPrefix(differenceText(sum.Most, zone), string(sum.Kind)+" ")
		kinds.Row(string(sum.Kind), fmt.Sprint(sum.Count), fmt.Sprint(sum.Models), meanings[sum.Kind], most)
	}
	if err := kinds.Flush(); err != nil || len(r.Differing) == 0 {
		return err
	}
	fmt.Fprintln(a.stdout)
	models := a.newTable("MODEL", "RUNS", "AGREE", "DIFFER")
	for i, m := range r.Differing {
		if i == mostShadowed {
			models.Row(fmt.Sprintf("and %d more: -o json has them all", len(r.Differing)-i))
			break
		}
		var counts []string
		for _, kind := range shadow.Kinds {
			if n := m.Counts[kind]; n > 0 {
				counts = append(counts, fmt.Sprintf("%s %d", kind, n))
			}
		}
		models.Row(m.UID, fmt.Sprint(m.Runs), fmt.Sprint(m.Agreed), strings.Join(counts, ", "))
	}
	return models.Flush()
}
