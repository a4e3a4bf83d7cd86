package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/commands"
	"github.com/refreshd/refreshd/internal/foresight/explain"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
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
		RunE: a.onStored(func(ctx context.Context, queue *store.Queue, uids []string) (err error) {
			if same.By, err = a.wantedBy(); err != nil {
				return err
			}
			if many.chosen() {
				return a.changeMany(ctx, operate.Operator{Queue: queue, By: same.By}, &many, same)
			}
			tally := newTally(a)
			for chunk := range slices.Chunk(uids, commands.BatchSize) {
				var batch []*commands.Request
				for _, uid := range chunk {
					command := *same
					command.UID = uid
					batch = append(batch, &commands.Request{Command: command})
				}
				if err := commands.ExecuteAll(ctx, queue, batch); err != nil {
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
	for _, uid := range uids[:min(len(uids), commands.BatchSize)] {
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
