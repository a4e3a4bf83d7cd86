package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/cmd/refreshd/internal/print"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/preview/shadow"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
)

func shadowCommand(a *app) *cobra.Command {
	var r operate.ShadowRequest
	each := false
	command := &cobra.Command{
		Use: "shadow LOG|- [-f DIR]", Short: "Compare when an old system refreshed its models with when we would have",
		Args: exactly(1, "one log of the old system, or - for standard input"),
		Long: `Read when an old system refreshed its models and how that ended, decide for the same models with our own code on a clock that jumps, and show where
the two disagree. Nothing is pushed, and nothing is written to Redis; with -f Redis is not even asked.

The models are those of the files of -f, with the policies there, or else those of the queue. The log is one of these:
  csv      a header, and a line for each run
  jsonl    a JSON object for each run
  monitor  what redis-cli monitor shows: the attempts that are pushed to NAME-input of --queue NAME, and their results on NAME-output
  cron     a log of the system in which cron names the commands that it starts: "… CRON[17]: (root) CMD (…)". A run belongs to the model with that
           command in its payload, as import crontab writes it; of several to that of the user, and then to the one that is planned for that minute
Lines are in the order of time for each model; models may be mixed, or come one after another. A run has uid and started_at, and if it is known
ended_at, outcome (success, failure, lost) and error_type; --columns says how they are called in the log. Without ended_at and outcome each
run counts as a success that took no time, so that retries cannot be compared.

What other systems mean by a cron expression of both kinds of day, or by an interval of hours that begins anew each midnight, is tried too: such a
rule is proposed where it differs less.

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
compared: its starts follow from saves, which no log has.

Exit codes: 0 old and new agree; 1 failed, or the log holds no run; 2 wrong usage; 3 something differs.`,
		Example: `  refreshd shadow cron.csv -f models.yaml --timezone Europe/Berlin --columns uid=table_id,at=started,ended=finished,outcome=status
  redis-cli monitor | refreshd shadow - -f models.yaml`,
		RunE: func(command *cobra.Command, args []string) error {
			if err := r.Validate(a.store.Queue); err != nil {
				return err
			}
			in := a.inputs()
			in.Connect = a.withStored
			show := a.printDifference
			if !each {
				show = nil
			}
			found, err := in.Shadow(command.Context(), r, time.Now(), args[0], a.showProgress, show)
			if err != nil {
				return err
			}
			return a.showShadow(&found)
		},
	}
	flags := command.Flags()
	flags.StringVarP(&r.Models, "filename", "f", "", "`DIR` or file with the models and their policies, as of apply (default those of the queue)")
	flags.StringVar(&r.Format, "format", shadow.FormatAuto, "`FORMAT` of the log: "+strings.Join(shadow.Formats, ", "))
	flags.StringVar(&r.Columns, "columns", "", "`MAP` of uid, at, ended, outcome and error to columns of the log, as in uid=table_id,at=started")
	flags.StringVar(&r.Outcomes, "outcomes", "", "`MAP` of further words to success, failure and lost, as in 1=success,0=failure")
	flags.StringVar(&r.Timezone, "timezone", "UTC", "`ZONE` of times without an offset, and of the output")
	flags.StringVar(&r.Within, "within", "1m", "`DURATION` that two starts may be apart and still agree")
	flags.StringVar(&r.From, "from", "", "`TIME` from which is compared (default the first run)")
	flags.StringVar(&r.Until, "until", "", "`TIME` until which is compared (default the last run)")
	flags.BoolVar(&each, "each", false, "print each difference too, in the order in which they are found")
	return command
}

var meanings = map[shadow.Kind]string{
	shadow.Earlier: "we would have started earlier", shadow.Later: "we would have started later",
	shadow.Missed: "planned, and not started", shadow.NotRetried: "we would have retried",
	shadow.Retried: "it was retried; we would have waited for the planned refresh", shadow.Twice: "it ran again beside its last run",
	shadow.Unplanned: "started, and not planned", shadow.GaveUp: "it went on; we would have disabled the model",
	shadow.TooLong: "it ran for longer than its timeout", shadow.Unknown: "no such model is defined", shadow.Unreadable: "the line is no run",
}

func (a *app) printDifference(d shadow.Difference, zone *time.Location) {
	if a.json() {
		_ = print.JSONLine(a.stdout, d) // a command that cannot print has no other way to report it
		return
	}
	fmt.Fprintln(a.stdout, plain(string(d.Kind)+" "+differenceText(d, zone)))
}

func differenceText(d shadow.Difference, zone *time.Location) string {
	parts := []string{
		d.UID,
		mark(d.Line > 0, fmt.Sprintf("line %d", d.Line)),
		mark(!d.Old.IsZero(), d.Old.In(zone).Format("old 2006-01-02 15:04:05Z07:00")),
		mark(!d.Ours.IsZero(), d.Ours.In(zone).Format("ours 2006-01-02 15:04:05Z07:00")),
		mark(d.By > 0, "by "+document.FormatDuration(d.By)),
		mark(d.Why != "", "("+d.Why+")"),
	}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), " ")
}

const mostShadowed = 20

// showShadow prints a comparison, and returns errDiffers if anything differs.
func (a *app) showShadow(s *operate.Shadow) (err error) {
	if !a.json() {
		err = a.tableShadow(s)
	}
	for _, line := range s.Lines() {
		if a.json() {
			err = cmp.Or(err, print.JSONLine(a.stdout, line))
		}
	}
	switch {
	case err != nil:
		return err
	case s.Differs():
		return errDiffers
	case s.Runs == 0:
		return errors.New("expected a log with at least one run, found none: it proves nothing")
	}
	return nil
}

func (a *app) tableShadow(s *operate.Shadow) error {
	minute := func(at time.Time) string { return at.In(s.Zone).Format("2006-01-02 15:04Z07:00") }
	fmt.Fprintf(a.stdout, "%s of %s%s; %d agree within %s%s%s\n", words.Count(s.Runs, "run", "runs"), words.Count(s.Models, "model", "models"),
		mark(!s.From.IsZero(), ", "+minute(s.From)+" to "+minute(s.To)), s.Agreed, document.FormatDuration(s.Within),
		mark(s.Unjudged > 0, fmt.Sprintf("; %d of models without a schedule", s.Unjudged)),
		mark(s.NoRuns > 0, fmt.Sprintf("; %s without any run", words.Count(s.NoRuns, "model", "models"))))
	if !s.Differs() {
		return nil
	}
	fmt.Fprintln(a.stdout)
	err := table(a, []any{"KIND", "COUNT", "MODELS", "MEANS", "FURTHEST, OR FIRST"}, func(sum *shadow.KindTotals) []any {
		return []any{sum.Kind, sum.Count, sum.Models, meanings[sum.Kind], differenceText(sum.Most, s.Zone)}
	})(s.Totals, nil)
	if err != nil || len(s.Differing) == 0 {
		return err
	}
	for _, p := range s.Proposals {
		fmt.Fprintf(a.stdout, "\n%s: by rrule %q it differs %s, not %d\n", p.UID, p.Rule, words.Count(p.Differs, "time", "times"), p.Differ)
	}
	fmt.Fprintln(a.stdout)
	models := a.newTable("MODEL", "RUNS", "AGREE", "DIFFER")
	for i, m := range s.Differing {
		if i == mostShadowed {
			models.Row(fmt.Sprintf("and %d more: -o json has them all", len(s.Differing)-i))
			break
		}
		var counts []string
		for _, kind := range shadow.Kinds {
			if n := m.Counts[kind]; n > 0 {
				counts = append(counts, fmt.Sprintf("%s %d", kind, n))
			}
		}
		models.Row(m.UID, m.Runs, m.Agreed, strings.Join(counts, ", "))
	}
	return models.Flush()
}
