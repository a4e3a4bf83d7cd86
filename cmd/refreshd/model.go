package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/preview/explain"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
)

func modelCommand(a *app) *cobra.Command {
	run, disable := model.Command{Type: model.CommandRun}, model.Command{Type: model.CommandDisable}
	running := a.actionCommand("run UID...|-l SELECTOR", "Start models at once; refused while an attempt is queued or running, and of models that were disabled by hand", &run)
	running.Flags().BoolVar(&run.Force, "force", false, "supersede an attempt that is queued or running, and enable what was disabled by hand")
	disabling := a.actionCommand("disable UID...|-l SELECTOR", "Stop models until they are enabled, whatever is saved meanwhile", &disable)
	disabling.Flags().StringVar(&disable.Reason, "reason", "", "`TEXT` for the owner of the model")
	return group("model", "Save, show and steer models",
		putCommand(a),
		a.onStored("get UID", "Show one model: its state, what it means, and its definition", oneUID,
			func(ctx context.Context, o operate.Operator, uids []string) error {
				pairs := func(found *operate.SoleModel) [][2]any { return modelPairs(&found.Model) }
				return inPairs(a, pairs)(operate.ReadModel(ctx, o.Queue, uids[0]))
			}),
		lsCommand(a),
		a.actionCommand("rm UID...|-l SELECTOR", "Remove models, with their payload and history", &model.Command{Type: model.CommandRemove}),
		running,
		a.actionCommand("enable UID...|-l SELECTOR", "Let disabled models wait for their schedule again", &model.Command{Type: model.CommandEnable}),
		disabling, historyCommand(a), exportCommand(a), importCommand(a))
}

// actionCommand makes a command that does the same to each named model, or to all that a selector picks.
func (a *app) actionCommand(use, short string, same *model.Command) *cobra.Command {
	var selection bulkSelection
	action := a.onStored(use, short, selection.args, func(ctx context.Context, o operate.Operator, uids []string) error {
		if selection.chosen() {
			return a.changeSelection(ctx, o, &selection, same)
		}
		tally, err := o.ExecuteEach(ctx, *same, uids, a.printOutcomes(true))
		if err == nil && same.Type == model.CommandRun && !a.json() {
			var lines []string
			lines, err = o.Waiting(ctx, uids)
			for _, line := range lines {
				fmt.Fprintln(a.stderr, line)
			}
		}
		return cmp.Or(err, reported(tally.Refused()))
	})
	selection.bind(a, action.Flags())
	selection.flags.StringVar(&selection.Rate, "rate", "", "with -l: at most so many models in a time, such as 50/s or 1/m, as `RATE` (default no bound)")
	selection.flags.BoolVar(&selection.dryRun, "dry-run", false, "with -l: change nothing; say how many models there are, and name ten")
	selection.expect.bind(selection.flags)
	selection.flags.BoolVar(&selection.Sure, "yes", false, "with -l: do it to all models of the queue, or remove")
	return action
}

func uidArgs(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return errors.New("expected the uid of a model, found none")
	}
	for _, uid := range args {
		if err := document.ValidateUID(uid); err != nil {
			return err
		}
	}
	return nil
}

func oneUID(command *cobra.Command, args []string) error {
	if len(args) > 1 {
		return fmt.Errorf("expected the uid of one model, found %d", len(args))
	}
	return uidArgs(command, args)
}

func bindSelector(flags *pflag.FlagSet, selector *string) {
	flags.StringVarP(selector, "selector", "l", "", "all models that `SELECTOR` picks, such as tenant=t1,status=failing; '' picks all")
}

// bulkSelection has the flags of a command about all models that a selector picks.
type bulkSelection struct {
	operate.BulkRequest

	flags  *pflag.FlagSet
	dryRun bool
	expect expectation
}

func (m *bulkSelection) bind(a *app, flags *pflag.FlagSet) {
	m.flags = flags
	a.bindBy(flags)
	bindSelector(flags, &m.Selector)
}

// chosen reports whether a selector was given, even an empty one.
func (m *bulkSelection) chosen() bool { return m.flags.Changed("selector") }

func (m *bulkSelection) args(_ *cobra.Command, uids []string) error {
	switch {
	case m.chosen() && len(uids) > 0:
		return errors.New("expected uids or a selector, found both")
	case m.chosen():
		return nil
	}
	for _, name := range []string{"rate", "dry-run", "yes", "expect"} {
		if m.flags.Changed(name) {
			return fmt.Errorf("--%s: expected -l with it, found uids", name)
		}
	}
	return uidArgs(nil, uids)
}

func (a *app) changeSelection(ctx context.Context, o operate.Operator, m *bulkSelection, same *model.Command) error {
	if m.dryRun {
		found, err := o.Select(ctx, m.Selector, false)
		err = result(a, a.printSelected)(found, err)
		return a.warnOfNoMatch(ctx, o, m.Selector, found.Models == 0, err)
	}
	if err := m.expect.of(ctx, o, m.Selector); err != nil {
		return err
	}
	m.Action, m.Reason, m.Force = same.Type, same.Reason, same.Force
	id, err := o.BeginBulk(ctx, m.BulkRequest)
	if err != nil {
		return err
	}
	return a.follow(ctx, o, id)
}

// expectation is how many models a selector has to pick; nil: any number.
type expectation struct{ models *int }

func (e *expectation) bind(flags *pflag.FlagSet) {
	flags.Var(e, "expect", "with -l: do nothing unless `N` models are picked now (default any number)")
}

func (e *expectation) Type() string { return "int" }

func (e *expectation) String() string {
	if e.models == nil {
		return ""
	}
	return strconv.Itoa(*e.models)
}

// Set is that of a flag.
func (e *expectation) Set(text string) error {
	models, err := strconv.ParseUint(text, 10, 31)
	e.models = new(int(models))
	return err
}

func (e *expectation) of(ctx context.Context, o operate.Operator, selector string) error {
	if e.models == nil {
		return nil
	}
	return operate.Expect(ctx, o, selector, *e.models)
}

// warnOfNoMatch prints a hint when nothing was found and a selector is why, unless something has failed.
func (a *app) warnOfNoMatch(ctx context.Context, o operate.Operator, selector string, nothing bool, failed error) error {
	if !nothing || failed != nil {
		return failed
	}
	text, err := operate.NoMatch(ctx, o, selector)
	if text != "" {
		a.report(text)
	}
	return err
}

func (a *app) printSelected(found *operate.Selected) error {
	fmt.Fprintln(a.stdout, words.Count(found.Models, "model", "models"))
	for _, uid := range found.Examples {
		fmt.Fprintln(a.stdout, plain(uid))
	}
	if more := found.Models - len(found.Examples); more > 0 {
		fmt.Fprintf(a.stdout, "and %d more\n", more)
	}
	return nil
}

func modelPairs(m *operate.Model) [][2]any {
	s, r := m.View, m.View.Record
	policy, _ := json.Marshal(m.InForce) // a policy always marshals
	zone := explain.ZoneOf(&r.Model)
	when := func(at time.Time) string {
		if at.IsZero() {
			return ""
		}
		return at.In(zone).Format("2006-01-02T15:04:05Z07:00  Mon, ") + words.Distance(at, s.Now)
	}
	return [][2]any{
		{"uid", m.UID}, {"status", string(s.Status)}, {"state", s.StatusText()}, {"fault", m.Fault},
		{"refresh at", when(m.RefreshAt)}, {"because", m.Why}, {"not before", when(m.NotBefore)}, {"planned at", when(m.PlannedAt)},
		{"phase", m.Phase}, {"parked by", string(m.ParkedBy)}, {"parked since", when(m.ParkedSince)},
		{"reserved", strings.Join(m.Reserved, ", ")}, {"counted by", strings.Join(m.CountedBy, ", ")},
		{"attempt", m.AttemptUID}, {"attempt no", mark(m.AttemptNo != 0, strconv.Itoa(m.AttemptNo))}, {"started at", when(m.StartedAt)},
		{"deadline at", when(m.DeadlineAt)}, {"processing at", when(m.ProcessingAt)},
		{"worker", m.Worker}, {"last heard at", when(m.HeardAt)}, {"again", mark(m.Again, "saved meanwhile: due again when the attempt ends")},
		{"outdated", mark(m.Outdated, "its payload was replaced: what it reports does not count")},
		{"worker says", m.UserFriendlyStatus}, {"progress", mark(m.Progress != 0, strconv.Itoa(m.Progress)+"%")},
		{"freshness", mark(r.Watched(), string(r.Freshness))}, {"freshness changes", when(r.StaleAt)}, {"last success at", when(m.LastSuccessAt)}, {"failing since", when(m.FailingSince)},
		{"gives up at", when(m.GivesUpAt)}, {"final failure at", when(m.FinalFailureAt)},
		{"retries", m.Summary()},
		{"labels", strings.Join(model.LabelTerms(m.Labels), ", ")}, {"host", m.Host}, {"rrule", m.Rule}, {"timezone", m.Timezone}, {"dtstart", m.Dtstart},
		{"policy", m.Policy + " " + string(policy)}, {"payload", string(m.Payload)},
		{"rejected", m.Rejected.Text(when)},
	}
}

func mark(set bool, text string) string {
	if !set {
		return ""
	}
	return text
}

func historyCommand(a *app) *cobra.Command {
	var log int
	command := a.onStored("history UID", "Show the attempts of a model that ended last, newest first", oneUID,
		func(ctx context.Context, o operate.Operator, uids []string) error {
			if log != 0 {
				return result(a, a.printLog)(operate.ReadLog(ctx, o.Queue, uids[0], log))
			}
			found, attempts, err := explain.ReadPast(ctx, o.Queue.Of(uids[0]), uids[0])
			switch {
			case err != nil:
				return err
			case a.output != outputTable && !a.json():
				return a.draw(explain.Picture(found, attempts))
			default:
				return a.printAttempts(attempts)
			}
		})
	command.Annotations = drawsPictures
	command.Flags().IntVar(&log, "log", 0, "show what attempt `N` has said instead; 1 is the one that ended last")
	return command
}

func (a *app) printLog(log *operate.Log) error {
	for line := range strings.Lines(log.Text) {
		fmt.Fprintln(a.stdout, strings.TrimRight(plain(line), " "))
	}
	switch {
	case log.LogURL != "":
		fmt.Fprintln(a.stdout, "The log is at "+plain(log.LogURL))
	case log.Text == "" && log.LogBytes > 0:
		fmt.Fprintln(a.stdout, "The log is not kept any more.")
	case log.Text == "":
		fmt.Fprintln(a.stdout, "The attempt has no log.")
	}
	return nil
}

func (a *app) printAttempts(past []model.Attempt) error {
	return table(a, []any{"ENDED AT", "ATTEMPT", "OUTCOME", "WAIT", "TOOK", "NEXT", "BECAUSE", "REASON"}, func(v *operate.Attempt) []any {
		outcome := string(v.Outcome) + mark(v.Final, " (final)") + mark(v.Times > 1, fmt.Sprintf(" (%d in a row)", v.Times))
		wait, took := "-", time.Duration(v.DurationMS)*time.Millisecond
		if v.WaitMS != nil {
			wait, took = (time.Duration(*v.WaitMS) * time.Millisecond).String(), time.Duration(*v.WorkMS)*time.Millisecond
		}
		number := "Initial"
		if v.AttemptNo >= 2 {
			number = fmt.Sprintf("Retry #%d", v.AttemptNo-1)
		}
		return []any{v.EndedAt, number, outcome, wait, took, v.RefreshAt, v.Why, v.Note()}
	})(operate.NewAttempts(past), nil)
}

func explainCommand(a *app) *cobra.Command {
	var trace bool
	command := a.onStored("explain UID", "Explain why a model refreshes when it does, and what happens next", oneUID,
		func(ctx context.Context, o operate.Operator, uids []string) error {
			return result(a, a.printExplanation)(operate.Explain(ctx, o.Queue, uids[0], trace))
		})
	command.Flags().BoolVar(&trace, "trace", false, "add the rule, the policy and the last attempts, with the numbers that decided")
	command.Long = `Explain in sentences the state of a model, its last success, what stops it, and what happens next and why; then what follows if the next attempt succeeds,
fails or is never answered. --trace adds how its last attempts ended.`
	return command
}

func (a *app) printExplanation(e *operate.Explanation) error {
	fmt.Fprintln(a.stdout, plain(e.Heading))
	for _, lines := range [][]string{e.Story, e.Follows, e.Trace} {
		if len(lines) > 0 {
			fmt.Fprintln(a.stdout)
		}
		for _, line := range lines {
			fmt.Fprintln(a.stdout, plain(line))
		}
	}
	return nil
}
