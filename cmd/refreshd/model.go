package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/refreshd/refreshd/model/document"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/scripts"
)

func modelCommand(a *app) *cobra.Command {
	return group("model", "Save, show and steer models",
		putCommand(a), getCommand(a), lsCommand(a), rmCommand(a), runCommand(a), enableCommand(a), disableCommand(a), historyCommand(a))
}

func rmCommand(a *app) *cobra.Command {
	return a.steer("rm UID...", "Remove models, with their payload and history", func(uid string) model.Command {
		return model.Command{Type: model.CommandRemove, UID: uid}
	})
}

func runCommand(a *app) *cobra.Command {
	var force bool
	command := a.steer("run UID...", "Start models at once; refused while an attempt is queued or running", func(uid string) model.Command {
		return model.Command{Type: model.CommandRun, UID: uid, Force: force}
	})
	command.Flags().BoolVar(&force, "force", false, "supersede an attempt that is queued or running")
	return command
}

func enableCommand(a *app) *cobra.Command {
	return a.steer("enable UID...", "Let disabled models wait for their schedule again", func(uid string) model.Command {
		return model.Command{Type: model.CommandEnable, UID: uid}
	})
}

func disableCommand(a *app) *cobra.Command {
	var reason string
	command := a.steer("disable UID...", "Stop models until their next update", func(uid string) model.Command {
		return model.Command{Type: model.CommandDisable, UID: uid, Reason: reason}
	})
	command.Flags().StringVar(&reason, "reason", "", "`TEXT` for the owner of the model")
	return command
}

// steer is a command that gives each model named on the command line the same order.
func (a *app) steer(use, short string, order func(uid string) model.Command) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: uidArgs,
		RunE: func(command *cobra.Command, uids []string) error {
			orders := make([]model.Command, len(uids))
			for i, uid := range uids {
				orders[i] = order(uid)
			}
			return a.withStore(command.Context(), func(store *scripts.Store) error {
				return a.carryOut(command.Context(), store, orders)
			})
		},
	}
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

// carryOut obeys commands of the command line and tells what became of each.
func (a *app) carryOut(ctx context.Context, store *scripts.Store, commands []model.Command) error {
	tally := &tally{app: a}
	for begin := 0; begin < len(commands); begin += batchSize {
		var batch []*order
		for _, command := range commands[begin:min(begin+batchSize, len(commands))] {
			batch = append(batch, &order{command: command})
		}
		if err := execute(ctx, store, batch); err != nil {
			return err
		}
		if err := tally.tell(batch); err != nil {
			return err
		}
	}
	return tally.failed()
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
		RunE: func(command *cobra.Command, uids []string) error {
			return a.withStore(command.Context(), func(store *scripts.Store) error {
				return a.get(command.Context(), store, uids[0])
			})
		},
	}
}

func (a *app) get(ctx context.Context, store *scripts.Store, uid string) error {
	v, err := readModel(ctx, store, uid)
	if err != nil {
		return err
	}
	if a.json() {
		return a.printJSON(v.view())
	}
	return a.printPairs(v.view().pairs(v.record, v.now))
}

// shown is a model as it was at one instant.
type shown struct {
	record *scripts.Record
	status model.Status
	now    time.Time
}

func (s shown) view() modelView { return view(s.record, s.status, s.now) }

// readModel reads one model that must be stored.
func readModel(ctx context.Context, store *scripts.Store, uid string) (shown, error) {
	found, err := readModels(ctx, store, []string{uid})
	if err != nil {
		return shown{}, err
	}
	if len(found) == 0 {
		return shown{}, fmt.Errorf("%s: %w", uid, errUnknownModel)
	}
	return found[0], nil
}

// readModels reads the models that are stored, in the order of uids.
func readModels(ctx context.Context, store *scripts.Store, uids []string) ([]shown, error) {
	now, err := store.Now(ctx)
	if err != nil {
		return nil, err
	}
	records, err := store.Load(ctx, uids)
	if err != nil {
		return nil, err
	}
	var queued map[string]string
	for _, record := range records {
		if queued == nil && record.Running() {
			if queued, err = store.Queued(ctx); err != nil {
				return nil, err
			}
		}
	}
	var found []shown
	for _, uid := range uids {
		if record := records[uid]; record.Exists {
			_, waiting := queued[record.AttemptUID]
			found = append(found, shown{record, record.Status(now, waiting), now})
		}
	}
	return found, nil
}
