package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
)

// aRejected is the kind of rejected messages, which have groups.
const aRejected = "a rejected"

func rejectedCommand(a *app) *cobra.Command {
	uid := ""
	list := a.operates("ls", "List rejected messages, oldest first", cobra.NoArgs, func(ctx context.Context, o operate.Operator, _ []string) error {
		return table(a, []any{"ID", "AT", "FROM", "UID", "REASON", "MESSAGE"}, func(r *operate.Rejected) []any {
			from := r.Source
			if len(o.Queue.Parts) > 1 {
				from = r.Queue + " " + from
			}
			return []any{r.ID, r.At, from, r.UID, r.Reason, document.Cut(document.OneLine(model.Masked(r.Raw)+r.RawBase64), 60)}
		})(o.Rejected(ctx, uid))
	})
	list.Flags().StringVar(&uid, "uid", "", "only those about the model `UID`")
	groups := lists(a, "List why messages were rejected, in each queue and list, the most frequent reason first", func(o operate.Operator, ctx context.Context) ([]operate.RejectedGroup, error) {
		all, err := o.Rejected(ctx, "")
		return operate.GroupRejected(all), err
	},
		[]any{"GROUP", "MESSAGES", "LAST", "QUEUE", "FROM", "REASON"}, func(g *operate.RejectedGroup) []any {
			return []any{g.ID, g.Messages, g.Last, g.Queue, g.Source, g.Reason}
		})
	groups.Use = "groups"
	requeue := a.changeMessages("requeue", "Move rejected messages back to the list that they came from, to be handled again", aRejected, operate.Operator.RequeueRejected)
	drop := a.changeMessages("drop", "Forget rejected messages", aRejected, operate.Operator.DropRejected)
	requeue.ValidArgsFunction = a.offer(rejectedIDs, cobra.ShellCompDirectiveNoFileComp)
	drop.ValidArgsFunction = requeue.ValidArgsFunction
	command := group("rejected", "List the messages that could not be handled, requeue or drop them", list, groups, requeue, drop)
	command.Long = `Messages of workers and applications that cannot be handled are kept, the last 1,000, with the reason. Once the reason is mended,
such as a model that was not there yet, they may be requeued: each goes to the tail of the list that it came from. Of a message of
more than 16 KiB only the beginning is kept; it can only be dropped.

A message is named by its ID, which ls shows. Two that are alike in all have one ID. groups counts them by reason: --group names all of one.`
	return command
}

func undeliveredCommand(a *app) *cobra.Command {
	list := lists(a, "List messages that could not be delivered, oldest first", operate.Operator.Undelivered,
		[]any{"ID", "AT", "RECIPIENT", "NOTICES", "TRIES", "REASON"}, func(u *operate.Undelivered) []any {
			return []any{u.ID, u.At, u.Recipient, len(u.Notices), u.Tries, document.Cut(document.OneLine(u.Reason), 80)}
		})
	command := group("undelivered", "List the messages of the notifier that could not be delivered, requeue or drop them", list,
		a.changeMessages("requeue", "Send them to their recipients again", "an undelivered", operate.Operator.RequeueUndelivered),
		a.changeMessages("drop", "Forget messages that could not be delivered", "an undelivered", operate.Operator.DropUndelivered))
	command.Long = `A message of the notifier that was refused for good, or failed too often, is kept, the last 1,000, with the reason. Once the reason is mended, it may be
requeued: it goes to the mailbox of its recipient, and is sent at once.

A message is named by its ID, which ls shows.`
	return command
}

// changeMessages makes a command about kept messages. kind is as in "a rejected".
func (a *app) changeMessages(
	use, short, kind string, change func(operate.Operator, context.Context, operate.Messages) (operate.Changed, error),
) *cobra.Command {
	var m operate.Messages
	command := a.operates(use+" [ID...|--all]", short, func(_ *cobra.Command, ids []string) error {
		m.IDs = ids
		return m.Validate(kind)
	}, func(ctx context.Context, o operate.Operator, _ []string) error {
		changed, err := change(o, ctx, m)
		if err != nil {
			return err
		}
		for _, refused := range changed.Refused {
			a.printProblem("", refused.Error())
		}
		_, err = fmt.Fprintln(a.stdout, words.Count(changed.Done, "message", "messages"))
		return cmp.Or(err, reported(len(changed.Refused) > 0))
	})
	if kind == aRejected {
		command.Use = use + " [ID...|--group GROUP|--all]"
		command.Flags().StringVar(&m.Group, "group", "", "all of the `GROUP`, as groups names it")
	}
	command.Flags().BoolVar(&m.All, "all", false, "all that are kept")
	return command
}

// rejectedIDs returns the IDs of all rejected messages, with the description for a shell.
func rejectedIDs(ctx context.Context, o operate.Operator, _ string) ([]string, error) {
	found, err := o.Rejected(ctx, "")
	return redis.Map(found, func(r operate.Rejected) string { return cobra.CompletionWithDesc(r.ID, plain(r.UID+" "+r.Reason)) }), err
}
