package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

func queueCommand(a *app) *cobra.Command {
	return group("queue", "Divide a queue into parts, say how its messages are written, and show both",
		queueCreateCommand(a), queueSetCommand(a), queueShowCommand(a))
}

func queueCreateCommand(a *app) *cobra.Command {
	var parts int
	command := &cobra.Command{
		Use: "create --parts N", Short: "Fix how many parts a queue has, before anything is saved in it", Args: cobra.NoArgs,
		Long: fmt.Sprintf(`Fix how many parts a queue has, 1 to %d, before anything is saved in it and before its daemons start. It is fixed for ever: a
model lives in the part that follows from its uid. To create a queue again alike changes nothing; one that nobody creates has
one part, with its own name.

Each part has keys of its own, as in {bigtables:3}:due. On Redis Cluster it lives in a slot of its own, so that the nodes share
the work of one queue, and the name of the queue needs no braces. On one Redis parts gain nothing.

All commands and daemons find the parts by the name of the queue. To look at one part alone: --queue '{bigtables:3}'.`, store.MaxParts),
		RunE: func(command *cobra.Command, _ []string) error {
			if parts < 1 || parts > store.MaxParts {
				return usagef("--parts: expected 1 to %d, found %d", store.MaxParts, parts)
			}
			return a.createQueue(command.Context(), parts)
		},
	}
	command.Flags().IntVar(&parts, "parts", 0, "`N` parts, for ever")
	return command
}

func (a *app) createQueue(ctx context.Context, parts int) error {
	err := a.withClients(func(clients *store.Clients) error { return store.Create(ctx, clients, a.storeConfig(), parts) })
	if err != nil {
		return err
	}
	return a.withQueue(ctx, a.showQueue)
}

func queueSetCommand(a *app) *cobra.Command {
	var wire model.Wire
	var payload string
	var force bool
	var above int
	command := &cobra.Command{
		Use: "set", Short: "Say how messages call the model and the attempt, and where the payload stands in them", Args: cobra.NoArgs,
		Long: `Say how the messages of a queue call the model and the attempt, and where the payload stands in an attempt: its fields at the top
level beside ours, or as a whole under the name payload, where it may use any name. What is not named here stays as it is.

Daemons read this when they begin, and attempts that are handed out are written as before. So it is refused while any daemon has
given a heartbeat within the last minute, or any attempt is queued or running: stop the daemons, the dispatcher first. Payloads that
are stored already are not looked at: see that none uses the new names.

Daemons also read when they begin how many models one cause of failures may stop before the operators are told of it; that may be set
at any time.

Results may always call them uid and attempt_uid, or big_table_uid and refresh_attempt_uid, too.`,
		RunE: func(command *cobra.Command, _ []string) error {
			if wire.ModelName+wire.AttemptName+payload == "" && !command.Flags().Changed("new-error-above") {
				return usagef("queue set: expected --model-name, --attempt-name, --payload or --new-error-above, found none")
			}
			if payload != "" {
				if err := oneOf("payload", payload, payloadPlaces); err != nil {
					return err
				}
			}
			if above < 0 {
				return usagef("--new-error-above: expected 0 or more, found %d", above)
			}
			return a.withQueue(command.Context(), func(queue *store.Queue) error {
				err := queue.SetWire(command.Context(), changedWire(queue.Wire, wire, payload), force)
				if refused, is := errors.AsType[*document.Error](err); is && refused.Field == "queue" && !force {
					err = fmt.Errorf("%w; --force sets it all the same", err)
				}
				if err == nil && command.Flags().Changed("new-error-above") {
					err = queue.SetNewErrorAbove(command.Context(), above)
				}
				if err != nil {
					return err
				}
				return a.showQueue(queue)
			})
		},
	}
	command.Flags().IntVar(&above, "new-error-above", store.Config{}.WithDefaults().NewErrorAbove, "tell the operators of a cause that stops more than `N` models; 0: of none")
	command.Flags().StringVar(&wire.ModelName, "model-name", "", "`NAME` of the field with the uid of the model, such as banner_uid")
	command.Flags().StringVar(&wire.AttemptName, "attempt-name", "", "`NAME` of the field with the uid of the attempt")
	command.Flags().StringVar(&payload, "payload", "", "`PLACE` of the payload: top or nested")
	command.Flags().BoolVar(&force, "force", false, "also while the queue is used")
	_ = command.RegisterFlagCompletionFunc("payload", cobra.FixedCompletions(payloadPlaces, cobra.ShellCompDirectiveNoFileComp))
	return command
}

var payloadPlaces = []string{store.PayloadTop, store.PayloadNested}

// changedWire is how messages are written when some of it is changed.
func changedWire(wire, change model.Wire, payload string) model.Wire {
	wire.ModelName, wire.AttemptName = cmp.Or(change.ModelName, wire.ModelName), cmp.Or(change.AttemptName, wire.AttemptName)
	if payload != "" {
		wire.Nested = payload == store.PayloadNested
	}
	return wire
}

func queueShowCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "show", Short: "Show how many parts a queue has, and how its messages are written", Args: cobra.NoArgs,
		RunE: a.onQueue(func(_ context.Context, queue *store.Queue, _ []string) error { return a.showQueue(queue) }),
	}
}

// queueView is a queue as -o json shows it.
type queueView struct {
	Queue       string `json:"queue"`
	Parts       int    `json:"parts"`
	ModelName   string `json:"model_name"`
	AttemptName string `json:"attempt_name"`
	Payload     string `json:"payload"` // top or nested
	// NewErrorAbove is how many models one cause of failures may stop before the operators are told; 0: they never are.
	NewErrorAbove int `json:"new_error_above"`
}

func (a *app) showQueue(queue *store.Queue) error {
	count, wire, payload := len(queue.Parts), queue.Wire.WithDefaults(), store.PayloadTop
	if wire.Nested {
		payload = store.PayloadNested
	}
	if a.json() {
		return a.printJSON(queueView{queue.Name, count, wire.ModelName, wire.AttemptName, payload, queue.NewErrorAbove()})
	}
	first, last := queue.Parts[0].Keys.Queue(), queue.Parts[count-1].Keys.Queue()
	text := "1 part, " + first
	if count > 1 {
		text = fmt.Sprintf("%d parts, %s to %s", count, first, last)
	}
	_, err := fmt.Fprintf(a.stdout, "%s: %s\nmodel: %s, attempt: %s, payload: %s\n", queue.Name, text, wire.ModelName, wire.AttemptName, payload)
	if above := queue.NewErrorAbove(); err == nil && above != (store.Config{}).WithDefaults().NewErrorAbove {
		_, err = fmt.Fprintf(a.stdout, "new causes of failures: told above %d models; 0: never\n", above)
	}
	return err
}
