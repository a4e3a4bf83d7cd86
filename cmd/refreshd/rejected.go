package main

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model/document"
)

func rejectedCommand(a *app) *cobra.Command {
	command := group("rejected", "List the messages that could not be handled, requeue or drop them",
		a.rejectedList(),
		a.changeRejected("requeue", "Move rejected messages back to the list that they came from, to be handled again",
			store.Fleet.RequeueRejected, func(r *store.Rejected) error { _, err := r.Message(); return err }),
		a.changeRejected("drop", "Forget rejected messages",
			store.Fleet.DropRejected, func(*store.Rejected) error { return nil }))
	command.Long = `Messages of workers and applications that cannot be handled are kept, the last 1,000, with the reason. Once the reason is mended,
such as a model that was not there yet, they may be requeued: each goes to the tail of the list that it came from. Of a message of
more than 16 KiB only the beginning is kept; it can only be dropped.

A message is named by its ID, which ls shows. Two that are alike in all have one ID.`
	return command
}

func (a *app) rejectedList() *cobra.Command {
	var uid string
	command := &cobra.Command{
		Use: "ls", Short: "List rejected messages, oldest first", Args: cobra.NoArgs,
		RunE: a.onQueue(func(ctx context.Context, queue *store.Queue, _ []string) error {
			found, err := queue.Fleet().Rejected(ctx, func(r *store.Rejected) bool { return uid == "" || r.UID == uid })
			if err != nil {
				return err
			}
			return a.printRejected(queue, found)
		}),
	}
	command.Flags().StringVar(&uid, "uid", "", "only those about the model `UID`")
	return command
}

// rejectedView is a rejected message as -o json shows it.
type rejectedView struct {
	ID        string `json:"id"`
	Queue     string `json:"queue"` // the queue, or the part of it, in which it is kept
	At        string `json:"at"`
	Source    string `json:"source"`
	UID       string `json:"uid"`
	Reason    string `json:"reason"`
	Raw       string `json:"raw"`
	RawBase64 string `json:"raw_base64,omitempty"` // in its place, of what is no UTF-8
	Bytes     string `json:"bytes,omitempty"`      // the size of a message of which only the beginning is kept
}

func (a *app) printRejected(queue *store.Queue, found []store.PartRejected) error {
	table := a.newTable("ID", "AT", "FROM", "UID", "REASON", "MESSAGE")
	for _, kept := range found {
		for _, r := range kept.Entries {
			view := rejectedView{r.ID(), kept.Part.Keys.Queue(), r.At, r.Source, r.UID, r.Reason, r.Raw, r.RawBase64, r.Bytes}
			if a.json() {
				if err := printJSONLine(a.stdout, view); err != nil {
					return err
				}
				continue
			}
			from := r.Source
			if len(queue.Parts) > 1 {
				from = view.Queue + " " + from
			}
			table.row(view.ID, r.At, from, r.UID, r.Reason, document.Cut(document.OneLine(r.Raw+r.RawBase64), 60))
		}
	}
	if a.json() {
		return nil
	}
	return table.Flush()
}

// changeRejected is a command that does something with rejected messages. Those for which refuses says why that cannot be are told, and left where
// they are.
func (a *app) changeRejected(
	use, short string, do func(store.Fleet, context.Context, []store.Rejected) (int, error), refuses func(*store.Rejected) error,
) *cobra.Command {
	command := a.changeKept(use, short, "a rejected", func(ctx context.Context, queue *store.Queue, wanted func(string) bool) (done, refused int, err error) {
		found, err := queue.Fleet().Rejected(ctx, func(r *store.Rejected) bool {
			if !wanted(r.ID()) {
				return false
			}
			err := refuses(r)
			if err != nil {
				refused++
				a.complain(r.ID() + ": " + err.Error())
			}
			return err == nil
		})
		if err != nil {
			return 0, refused, err
		}
		for _, kept := range found {
			count, err := do(kept.Part.Fleet(), ctx, kept.Entries)
			if done += count; err != nil {
				return done, refused, queue.PartError(kept.Part, err)
			}
		}
		return done, refused, nil
	})
	command.ValidArgsFunction = a.completeRejected
	return command
}

func (a *app) completeRejected(command *cobra.Command, given []string, _ string) (ids []string, _ cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(command.Context(), time.Second)
	defer cancel()
	if a.settle(command) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	_ = a.withQueue(ctx, func(queue *store.Queue) error { // without Redis there is nothing to offer
		found, err := queue.Fleet().Rejected(ctx, func(r *store.Rejected) bool { return !slices.Contains(given, r.ID()) })
		for _, kept := range found {
			for _, r := range kept.Entries {
				ids = append(ids, r.ID()+"\t"+plain(r.UID+" "+r.Reason))
			}
		}
		return err
	})
	return ids, cobra.ShellCompDirectiveNoFileComp
}
