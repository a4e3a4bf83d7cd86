package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model/document"
)

func undeliveredCommand(a *app) *cobra.Command {
	command := group("undelivered", "List the messages of the notifier that could not be delivered, requeue or drop them",
		a.undeliveredList(),
		a.changeUndelivered("requeue", "Tell the recipients again", store.Outbox.RequeueUndelivered),
		a.changeUndelivered("drop", "Forget messages that could not be delivered", store.Outbox.DropUndelivered))
	command.Long = `A message of the notifier that was refused for good, or failed too often, is kept, the last 1,000, with the reason. Once the reason is mended, it may be
requeued: it goes to the line of its recipient, who is told at once.

A message is named by its ID, which ls shows.`
	return command
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
		RunE: a.onQueue(func(ctx context.Context, queue *store.Queue, _ []string) error {
			table := a.newTable("ID", "AT", "RECIPIENT", "NOTICES", "TRIES", "REASON")
			err := queue.Each(func(part *store.Store) error {
				all, err := part.Outbox().Undelivered(ctx)
				for _, one := range all {
					if !a.json() {
						table.row(one.ID(), one.At, one.Recipient, fmt.Sprint(len(one.Notices)), fmt.Sprint(one.Tries), document.Cut(document.OneLine(one.Reason), 80))
						continue
					}
					view := undeliveredView{ID: one.ID(), Queue: part.Keys.Queue(), At: one.At, Recipient: one.Recipient, Tries: one.Tries, Reason: one.Reason}
					for _, notice := range one.Notices {
						view.Notices = append(view.Notices, json.RawMessage(notice))
					}
					if err := printJSONLine(a.stdout, view); err != nil {
						return err
					}
				}
				return err
			})
			if err != nil || a.json() {
				return err
			}
			return table.Flush()
		}),
	}
}

// changeUndelivered is a command that does something with undelivered messages.
func (a *app) changeUndelivered(use, short string, do func(store.Outbox, context.Context, []store.Undelivered) (int, error)) *cobra.Command {
	return a.changeKept(use, short, "an undelivered", func(ctx context.Context, queue *store.Queue, wanted func(string) bool) (done, _ int, err error) {
		err = queue.Each(func(part *store.Store) error {
			all, err := part.Outbox().Undelivered(ctx)
			if err != nil {
				return err
			}
			count, err := do(part.Outbox(), ctx, slices.DeleteFunc(all, func(one store.Undelivered) bool { return !wanted(one.ID()) }))
			done += count
			return err
		})
		return done, 0, err
	})
}
