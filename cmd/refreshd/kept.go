package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model/words"
)

// keptChange does something with those messages of a queue that are wanted by their IDs; refused is how many of these it has complained of instead.
type keptChange func(ctx context.Context, queue *store.Queue, wanted func(id string) bool) (done, refused int, err error)

// changeKept is a command about messages of a kind that are kept until a person decides: about those that are named, or all. kind is as in "a
// rejected".
func (a *app) changeKept(use, short, kind string, change keptChange) *cobra.Command {
	var all bool
	command := &cobra.Command{
		Use: use + " [ID...|--all]", Short: short,
		Args: func(_ *cobra.Command, ids []string) error {
			if all == (len(ids) > 0) {
				return fmt.Errorf("expected the ID of %s message, or several, or --all, found %s", kind, map[bool]string{true: "both", false: "neither"}[all])
			}
			return nil
		},
		RunE: a.onQueue(func(ctx context.Context, queue *store.Queue, ids []string) error {
			if err := queue.RequireWhole(); err != nil {
				return err
			}
			unknown := slices.Clone(ids)
			done, refused, err := change(ctx, queue, func(id string) bool {
				unknown = slices.DeleteFunc(unknown, func(other string) bool { return other == id })
				return all || slices.Contains(ids, id)
			})
			if err != nil {
				return err
			}
			for _, id := range unknown {
				a.complain(id + ": expected the ID of " + kind + " message, found none of that ID")
			}
			if _, err := fmt.Fprintln(a.stdout, words.Count(done, "message", "messages")); err != nil || refused+len(unknown) == 0 {
				return err
			}
			return errReported
		}),
	}
	command.Flags().BoolVar(&all, "all", false, "all that are kept")
	return command
}
