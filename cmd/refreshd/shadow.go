package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/cmd/refreshd/internal/print"
	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/foresight/shadow"
	"github.com/refreshd/refreshd/internal/foresight/simulate"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/words"
)

func shadowCommand(a *app) *cobra.Command {
	var f shadowFlags
	command := &cobra.Command{
		Use: "shadow LOG|- [-f DIR]", Short: "Compare when an old system refreshed its models with when we would have",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("expected one log of the old system, or - for standard input, found %d", len(args))
			}
			return nil
		},
		Long: `Read when an old system refreshed its models and how that ended, decide for the same models with our own code on a clock that jumps, and tell where
the two disagree. Nothing is pushed, and nothing is written to Redis; with -f Redis is not even asked.

The models are those of the files of -f, with the policies there, or else those of the queue. The log is one of these:
  csv      a header, and a line for each run
  jsonl    a JSON object for each run
  monitor  what redis-cli monitor shows: the attempts that are pushed to NAME-input of --queue NAME, and their results on NAME-output
Lines are in the order of time for each model; models may be mixed, or come one after another. A run has uid and started_at, and if it is known
ended_at, outcome (success, failure, lost) and error_type; --columns says how they are called in the log. Without ended_at and outcome each
run counts as a success that took no time, so that retries cannot be compared.

A run belongs to the nearest start of ours. Our attempt then ends as the run did, and what comes next is decided anew. Kinds of disagreement:
  earlier, later   we would have started earlier, later
  missed           a planned refresh that the old system did not start
  not_retried      we would have retried; the old system waited
  retried          the old system retried; we would have waited for the planned refresh
  twice            it ran again while its last run was going on, or in the same moment
  unplanned        it was started though no plan asks for it, as by hand
  gave_up          it went on after we would have disabled the model
  too_long         it ran for longer than the timeout allows
  unknown          a run of a model that is not defined
  unreadable       a line that is no run

Workers are taken to begin at once, and jitter, limits, circuits and holds count for nothing. Of a model without a schedule only retries are
compared: when it is to start follows from saves, which no log tells.

Exit codes: 0 old and new agree; 1 failed, or the log holds no run; 2 wrong usage; 3 something differs.`,
		Example: `  refreshd shadow cron.csv -f models.yaml --timezone Europe/Berlin --columns uid=table_id,at=started,ended=finished,outcome=status
  redis-cli monitor | refreshd shadow - -f models.yaml`,
		RunE: func(command *cobra.Command, args []string) error { return a.shadow(command.Context(), args[0], f) },
	}
	flags := command.Flags()
	flags.StringVarP(&f.models, "filename", "f", "", "`DIR` or file with the models and their policies, as of apply (default those of the queue)")
	flags.StringVar(&f.format, "format", shadow.FormatAuto, "`FORMAT` of the log: "+strings.Join(shadow.Formats, ", "))
	flags.StringVar(&f.columns, "columns", "", "`MAP` of uid, at, ended, outcome and error to columns of the log, as in uid=table_id,at=started")
	flags.StringVar(&f.outcomes, "outcomes", "", "`MAP` of further words to success, failure and lost, as in 1=success,0=failure")
	flags.StringVar(&f.timezone, "timezone", "UTC", "`ZONE` of times without an offset, and of what is told")
	flags.StringVar(&f.within, "within", "1m", "`DURATION` that two starts may be apart and still agree")
	flags.StringVar(&f.from, "from", "", "`TIME` from which is compared (default the first run)")
	flags.StringVar(&f.until, "until", "", "`TIME` until which is compared (default the last run)")
	flags.BoolVar(&f.each, "each", false, "tell each difference too, in the order in which they are found")
	return command
}

// shadowFlags are the settings of a comparison.
type shadowFlags struct {
	models, format, columns, outcomes, timezone, within, from, until string

	each bool
}

func (a *app) shadow(ctx context.Context, from string, f shadowFlags) error {
	log, options, err := f.settle(a)
	if err != nil {
		return err
	}
	if f.each {
		options.Tell = func(d shadow.Difference) { a.tellDifference(d, log.Zone) }
	}
	comparison := shadow.New(options)
	if f.models != "" {
		err = a.defineFiles(comparison, f.models)
	} else {
		err = a.withStored(ctx, func(queue *store.Queue) error {
			log.Wire = queue.Wire
			return defineStored(ctx, comparison, queue)
		})
	}
	if err != nil {
		return err
	}
	report, err := a.compare(ctx, comparison, &log, from)
	if err != nil {
		return err
	}
	return a.showShadow(report, log.Zone, options.Within)
}

func (f *shadowFlags) settle(a *app) (log shadow.Log, options shadow.Options, err error) {
	keys, err := store.NewKeys(a.store.Queue)
	if err != nil {
		return log, options, usageError{err}
	}
	log = shadow.Log{Format: f.format, Input: keys.Input, Output: keys.Output}
	if err := oneOf("format", f.format, shadow.Formats); err != nil {
		return log, options, err
	}
	if log.Columns, err = shadow.ParseColumns(f.columns); err != nil {
		return log, options, usagef("--columns: %w", err)
	}
	if log.Columns.Outcomes, err = shadow.ParseOutcomes(f.outcomes); err != nil {
		return log, options, usagef("--outcomes: %w", err)
	}
	if log.Zone, err = time.LoadLocation(f.timezone); err != nil || f.timezone == "Local" {
		return log, options, usagef("--timezone: expected an IANA name such as Europe/Berlin, found %s", document.Found(f.timezone))
	}
	if options.Within, err = document.ParseDuration(f.within); err != nil {
		return log, options, usagef("--within: %w", err)
	}
	for _, flag := range []struct {
		name, text string
		to         *time.Time
	}{{"from", f.from, &options.From}, {"until", f.until, &options.To}} {
		if flag.text == "" {
			continue
		}
		if *flag.to, err = simulate.ParseTime(flag.text, log.Zone); err != nil {
			return log, options, usagef("--%s: %w", flag.name, err)
		}
	}
	return log, options, nil
}

func (a *app) compare(ctx context.Context, comparison *shadow.Comparison, log *shadow.Log, from string) (*shadow.Report, error) {
	name, in, err := a.openInput(from)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	err = log.Read(a.showProgress(in), func(run shadow.Run) error { return cmp.Or(ctx.Err(), comparison.Take(run)) }, comparison.Refuse)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return comparison.End()
}

// defineFiles adds the models of a directory or file.
func (a *app) defineFiles(comparison *shadow.Comparison, from string) error {
	directory, err := definitions.ReadDirectory(from)
	if err != nil {
		return err
	}
	for _, refused := range directory.Refused {
		a.complain(refused.At(refused.Err).Error())
	}
	if len(directory.Refused) > 0 {
		return errReported
	}
	policies, err := directory.WholePolicies(policy.Default())
	if err != nil {
		return err
	}
	for _, m := range directory.Models {
		m.Definition.Complete(policies.ByName[policy.DefaultName])
		p, err := policies.Find(&m.Definition)
		if err == nil {
			_, err = simulate.NewModel(m.Definition, p, time.Now())
		}
		if err != nil {
			return m.At(err)
		}
		comparison.Define(m.Definition.UID, func(at time.Time) (*model.Model, error) { return simulate.NewModel(m.Definition, p, at) })
	}
	return nil
}

// defineStored adds the models of a queue, as they are defined; what they are doing does not count.
func defineStored(ctx context.Context, comparison *shadow.Comparison, queue *store.Queue) error {
	return operate.Operator{Queue: queue}.EachModel(ctx, func(_ *store.Store, records []*store.Record) error {
		for _, record := range records {
			stored := record.Model
			stored.State = model.State{Phase: stored.Phase}
			stored.Payload = ""
			comparison.Define(stored.UID, func(time.Time) (*model.Model, error) { return &stored, nil })
		}
		return nil
	})
}

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
