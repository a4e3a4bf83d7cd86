package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
	"github.com/refreshd/refreshd/scripts"
)

func undeliveredCommand(a *app) *cobra.Command {
	command := group("undelivered", "List the messages of the notifier that could not be delivered, requeue or drop them",
		a.undeliveredList(),
		a.undeliveredChange("requeue", "Tell the recipients again", (*scripts.Store).RequeueUndelivered),
		a.undeliveredChange("drop", "Forget messages that could not be delivered", (*scripts.Store).DropUndelivered))
	command.Long = `A message of the notifier that was refused for good, or failed too often, is kept, the last 1,000, with the reason. Once the reason is mended, it may be
requeued: it goes to the line of its recipient, who is told at once.

A message is named by its ID, which ls shows.`
	return command
}

// keptMessages are undelivered messages of one part of a queue.
type keptMessages struct {
	part *scripts.Store
	all  []scripts.Undelivered
}

func readUndelivered(ctx context.Context, queue *scripts.Queue) (found []keptMessages, err error) {
	err = queue.Each(func(part *scripts.Store) error {
		all, err := part.Undelivered(ctx)
		found = append(found, keptMessages{part, all})
		return err
	})
	return found, err
}

// undeliveredView is an undelivered message as -o json shows it.
type undeliveredView struct {
	ID        string            `json:"id"`
	Queue     string            `json:"queue"` // the queue, or the part of it, in which it is kept
	At        string            `json:"at"`
	Recipient string            `json:"recipient"`
	Tries     int               `json:"tries"`
	Reason    string            `json:"reason"`
	Notices   []json.RawMessage `json:"notices"`
}

func (a *app) undeliveredList() *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "List messages that could not be delivered, oldest first", Args: cobra.NoArgs,
		RunE: a.onQueue(func(ctx context.Context, queue *scripts.Queue, _ []string) error {
			found, err := readUndelivered(ctx, queue)
			if err != nil {
				return err
			}
			table := a.newTable("ID", "AT", "RECIPIENT", "NOTICES", "TRIES", "REASON")
			for _, kept := range found {
				for _, one := range kept.all {
					if !a.json() {
						table.row(one.ID(), one.At, one.Recipient, fmt.Sprint(len(one.Notices)), fmt.Sprint(one.Tries), document.Cut(document.OneLine(one.Reason), 80))
						continue
					}
					view := undeliveredView{ID: one.ID(), Queue: kept.part.Keys.Queue(), At: one.At, Recipient: one.Recipient, Tries: one.Tries, Reason: one.Reason}
					for _, notice := range one.Notices {
						view.Notices = append(view.Notices, json.RawMessage(notice))
					}
					if err := printJSONLine(a.stdout, view); err != nil {
						return err
					}
				}
			}
			if a.json() {
				return nil
			}
			return table.Flush()
		}),
	}
}

// undeliveredChange is a command that does something with the undelivered messages that are named, or with all.
func (a *app) undeliveredChange(use, short string, change func(*scripts.Store, context.Context, []scripts.Undelivered) (int, error)) *cobra.Command {
	var all bool
	command := &cobra.Command{
		Use: use + " [ID...|--all]", Short: short,
		Args: func(_ *cobra.Command, ids []string) error {
			if all == (len(ids) > 0) {
				return fmt.Errorf("expected the IDs of undelivered messages, or --all, found %s", map[bool]string{true: "both", false: "neither"}[all])
			}
			return nil
		},
		RunE: a.onQueue(func(ctx context.Context, queue *scripts.Queue, ids []string) error {
			if err := queue.RequireWhole(); err != nil {
				return err
			}
			found, err := readUndelivered(ctx, queue)
			if err != nil {
				return err
			}
			done, unknown := 0, slices.Clone(ids)
			for _, kept := range found {
				wanted := slices.DeleteFunc(kept.all, func(one scripts.Undelivered) bool { return !all && !slices.Contains(ids, one.ID()) })
				for _, one := range wanted {
					unknown = slices.DeleteFunc(unknown, func(id string) bool { return id == one.ID() })
				}
				count, err := change(kept.part, ctx, wanted)
				if done += count; err != nil {
					return queue.PartError(kept.part, err)
				}
			}
			for _, id := range unknown {
				a.complain(id + ": expected the ID of an undelivered message, found none of that ID")
			}
			if _, err := fmt.Fprintln(a.stdout, words.Count(done, "message", "messages")); err != nil || len(unknown) == 0 {
				return err
			}
			return errReported
		}),
	}
	command.Flags().BoolVar(&all, "all", false, "all that are kept")
	return command
}
