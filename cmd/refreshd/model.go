package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/refreshd/refreshd/internal/foresight/explain"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
)

func modelCommand(a *app) *cobra.Command {
	return group("model", "Save, show and steer models",
		putCommand(a), getCommand(a), lsCommand(a),
		a.steer("rm UID...|-l SELECTOR", "Remove models, with their payload and history", &model.Command{Type: model.CommandRemove}),
		runCommand(a),
		a.steer("enable UID...|-l SELECTOR", "Let disabled models wait for their schedule again", &model.Command{Type: model.CommandEnable}),
		disableCommand(a), historyCommand(a), exportCommand(a), importCommand(a))
}

func runCommand(a *app) *cobra.Command {
	run := model.Command{Type: model.CommandRun}
	command := a.steer("run UID...|-l SELECTOR", "Start models at once; refused while an attempt is queued or running, and of models that were disabled by hand", &run)
	command.Flags().BoolVar(&run.Force, "force", false, "supersede an attempt that is queued or running, and enable what was disabled by hand")
	return command
}

func disableCommand(a *app) *cobra.Command {
	disable := model.Command{Type: model.CommandDisable}
	command := a.steer("disable UID...|-l SELECTOR", "Stop models until they are enabled, whatever is saved meanwhile", &disable)
	command.Flags().StringVar(&disable.Reason, "reason", "", "`TEXT` for the owner of the model")
	return command
}

// steer is a command that carries out the same for each model named on the command line, or for all that a selector picks.
func (a *app) steer(use, short string, same *model.Command) *cobra.Command {
	var many many
	steer := &cobra.Command{
		Use: use, Short: short, Args: many.args,
		RunE: a.onStored(func(ctx context.Context, o operate.Operator, uids []string) (err error) {
			queue := o.Queue
			same.By = o.By
			if many.chosen() {
				return a.changeMany(ctx, o, &many, same)
			}
			tally := newTally(a)
			for chunk := range slices.Chunk(uids, operate.BatchSize) {
				var batch []*operate.Request
				for _, uid := range chunk {
					command := *same
					command.UID = uid
					batch = append(batch, &operate.Request{Command: command})
				}
				if err := operate.Execute(ctx, queue, batch); err != nil {
					return err
				}
				if err := tally.tell(batch); err != nil {
					return err
				}
			}
			if same.Type == model.CommandRun && !a.json() {
				if err := a.tellLine(ctx, queue, uids[len(uids)-1]); err != nil {
					return err
				}
				if err := a.tellHeld(ctx, queue, uids); err != nil {
					return err
				}
			}
			return tally.failed()
		}),
	}
	a.bindBy(steer.Flags())
	many.bind(steer.Flags())
	return steer
}

// tellLine tells on stderr where the model stands that is to be started last. One that stands nowhere was refused, or is taken already.
func (a *app) tellLine(ctx context.Context, queue *store.Queue, uid string) error {
	part := queue.Of(uid)
	records, err := part.Load(ctx, []string{uid})
	if err != nil {
		return err
	}
	place, err := part.Report().QueuePosition(ctx, records[uid])
	if err == nil && place.No > 0 {
		fmt.Fprintf(a.stderr, "%s: %s\n", uid, explain.InLine(place))
	}
	return err
}

// tellHeld tells on stderr which models were run and do not start, as they are held or a calendar is closed.
func (a *app) tellHeld(ctx context.Context, queue *store.Queue, uids []string) error {
	for _, uid := range uids[:min(len(uids), operate.BatchSize)] {
		part := queue.Of(uid)
		now, err := part.Now(ctx)
		if err != nil {
			return err
		}
		gates, err := part.Blockers(ctx)
		if err != nil {
			return err
		}
		records, err := part.Load(ctx, []string{uid})
		if err != nil {
			return err
		}
		if m := &records[uid].Model; m.Waiting() {
			if gate, until := gates.Stop(m, now); gate != "" {
				when := func(at time.Time) string { return when(at, now, "") }
				fmt.Fprintf(a.stderr, "%s: it does not start yet: %s\n", uid, plain(explain.StopText(&gates, gate, until, when)))
			}
		}
	}
	return nil
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

// oneUID accepts the uid of exactly one model.
func oneUID(command *cobra.Command, args []string) error {
	if len(args) > 1 {
		return fmt.Errorf("expected the uid of one model, found %d", len(args))
	}
	return uidArgs(command, args)
}

func getCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "get UID", Short: "Show one model: its state, what it means, and its definition", Args: oneUID,
		RunE: a.onPart(func(ctx context.Context, part *store.Store, uids []string) error {
			found, err := explain.ReadModel(ctx, part, uids[0])
			if err != nil {
				return err
			}
			if err := found.ReadLiveness(ctx, part); err != nil {
				return err
			}
			return a.print(viewSole(found), pairsOf(found))
		}),
	}
}

// many are the flags of a command that is about all models which a selector picks.
type many struct {
	flags    *pflag.FlagSet
	selector string
	rate     string
	dryRun   bool
	yes      bool
}

// bindSelector adds the flag by which models are picked.
func bindSelector(flags *pflag.FlagSet, selector *string) {
	flags.StringVarP(selector, "selector", "l", "", "all models that `SELECTOR` picks, such as tenant=t1,status=failing; '' picks all")
}

func (m *many) bind(flags *pflag.FlagSet) {
	m.flags = flags
	bindSelector(flags, &m.selector)
	flags.StringVar(&m.rate, "rate", "", "with -l: at most so many models in a time, such as 50/s or 1/m, as `RATE` (default no bound)")
	flags.BoolVar(&m.dryRun, "dry-run", false, "with -l: change nothing; say how many models there are, and name ten")
	flags.BoolVar(&m.yes, "yes", false, "with -l: do it to all models of the queue, or remove")
}

// bindBounds adds the flags of a command whose selector is known.
func (m *many) bindBounds(flags *pflag.FlagSet) {
	m.flags = flags
	flags.StringVar(&m.rate, "rate", "", "at most so many models in a time, such as 50/s or 1/m, as `RATE` (default no bound)")
	flags.BoolVar(&m.dryRun, "dry-run", false, "change nothing; say how many models there are, and name ten")
}

// chosen reports whether a selector was given, be it an empty one.
func (m *many) chosen() bool { return m.flags.Changed("selector") }

func (m *many) args(_ *cobra.Command, uids []string) error {
	if m.chosen() && len(uids) > 0 {
		return errBoth
	}
	if m.chosen() {
		return nil
	}
	for _, name := range []string{"rate", "dry-run", "yes"} {
		if m.flags.Changed(name) {
			return fmt.Errorf("--%s: expected -l with it, found uids", name)
		}
	}
	return uidArgs(nil, uids)
}

var errBoth = errors.New("expected uids or a selector, found both")

// changeMany begins a bulk, and tells how far it is until it is over.
func (a *app) changeMany(ctx context.Context, o operate.Operator, m *many, same *model.Command) error {
	if m.dryRun {
		found, err := o.Select(ctx, m.selector)
		if err != nil {
			return err
		}
		return a.printSelected(found)
	}
	id, err := o.BeginBulk(ctx, operate.BulkRequest{
		Action: same.Type, Selector: m.selector, Rate: m.rate, Reason: same.Reason, Force: same.Force, Sure: m.yes,
	})
	if err != nil {
		return err
	}
	return a.follow(ctx, o, id)
}

func (a *app) printSelected(found operate.Selected) error {
	if a.json() {
		return a.printJSON(found)
	}
	fmt.Fprintln(a.stdout, words.Count(found.Models, "model", "models"))
	for _, uid := range found.Examples {
		fmt.Fprintln(a.stdout, plain(uid))
	}
	if more := found.Models - len(found.Examples); more > 0 {
		fmt.Fprintf(a.stdout, "and %d more\n", more)
	}
	return nil
}
