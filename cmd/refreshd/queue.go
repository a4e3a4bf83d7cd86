package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/scripts"
)

func queueCommand(a *app) *cobra.Command {
	return group("queue", "Divide a queue into parts, and show them", queueCreateCommand(a), queueShowCommand(a))
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

All commands and daemons find the parts by the name of the queue. To look at one part alone: --queue '{bigtables:3}'.`, scripts.MaxParts),
		RunE: func(command *cobra.Command, _ []string) error {
			if parts < 1 || parts > scripts.MaxParts {
				return usagef("--parts: expected 1 to %d, found %d", scripts.MaxParts, parts)
			}
			return a.createQueue(command.Context(), parts)
		},
	}
	command.Flags().IntVar(&parts, "parts", 0, "`N` parts, for ever")
	return command
}

func (a *app) createQueue(ctx context.Context, parts int) error {
	err := a.withClients(func(clients *scripts.Clients) error { return scripts.Create(ctx, clients, a.storeConfig(), parts) })
	if err != nil {
		return err
	}
	return a.withQueue(ctx, a.showQueue)
}

func queueShowCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "show", Short: "Show how many parts a queue has", Args: cobra.NoArgs,
		RunE: a.onQueue(func(_ context.Context, queue *scripts.Queue, _ []string) error { return a.showQueue(queue) }),
	}
}

// queueView is a queue as -o json shows it.
type queueView struct {
	Queue string `json:"queue"`
	Parts int    `json:"parts"`
}

func (a *app) showQueue(queue *scripts.Queue) error {
	count := len(queue.Parts)
	if a.json() {
		return a.printJSON(queueView{queue.Name, count})
	}
	first, last := queue.Parts[0].Keys.Queue(), queue.Parts[count-1].Keys.Queue()
	text := "1 part, " + first
	if count > 1 {
		text = fmt.Sprintf("%d parts, %s to %s", count, first, last)
	}
	_, err := fmt.Fprintf(a.stdout, "%s: %s\n", queue.Name, text)
	return err
}
