package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/scripts"
)

type listing struct {
	status, prefix string
	limit          int
}

var statuses = []string{
	string(model.StatusDisabled), string(model.StatusScheduled), string(model.StatusDue),
	string(model.StatusQueued), string(model.StatusProcessing), string(model.StatusFinished), string(model.StatusBroken),
}

func lsCommand(a *app) *cobra.Command {
	var which listing
	command := &cobra.Command{
		Use: "ls", Short: "List models, in no order", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if which.status != "" {
				if err := oneOf("status", which.status, statuses); err != nil {
					return err
				}
			}
			return a.withStored(command.Context(), func(queue *scripts.Queue) error { return a.ls(command.Context(), queue, which) })
		},
	}
	command.Flags().StringVar(&which.status, "status", "", "only models with this `STATUS`: "+strings.Join(statuses, ", "))
	command.Flags().StringVar(&which.prefix, "prefix", "", "only models whose uid begins with `TEXT`")
	command.Flags().IntVar(&which.limit, "limit", 0, "at most `N` models (default all)")
	return command
}

// errEnough ends a walk over the models early.
var errEnough = errors.New("enough")

func (a *app) ls(ctx context.Context, queue *scripts.Queue, which listing) error {
	if !a.json() {
		fmt.Fprintf(a.stdout, lsRow, "UID", "STATUS", "REFRESH AT", "NO", "BECAUSE")
	}
	listed := 0
	return queue.Each(func(part *scripts.Store) error {
		if which.limit > 0 && listed >= which.limit {
			return nil
		}
		err := part.EachModel(ctx, which.prefix, func(uids []string) error {
			found, err := readModels(ctx, part, uids)
			if err != nil {
				return err
			}
			if err := a.lsChunk(found, which, &listed); err != nil {
				return err
			}
			return ctx.Err()
		})
		if errors.Is(err, errEnough) {
			return nil
		}
		return err
	})
}

// lsChunk prints those of the models that are wanted, and counts them; errEnough: there may be no more.
func (a *app) lsChunk(found []shown, which listing, listed *int) error {
	var lines strings.Builder
	for _, model := range found {
		if which.status != "" && which.status != string(model.status) {
			continue
		}
		if err := a.lsLine(&lines, model); err != nil {
			return err
		}
		if *listed++; *listed == which.limit {
			break
		}
	}
	if _, err := io.WriteString(a.stdout, lines.String()); err != nil {
		return err
	}
	if which.limit > 0 && *listed >= which.limit {
		return errEnough
	}
	return nil
}

// lsRow has fixed widths, because the rows are printed as they are found.
const lsRow = "%-32s  %-10s  %-24s  %3v  %s\n"

func (a *app) lsLine(to io.Writer, s shown) error {
	if a.json() {
		return printJSONLine(to, s.view())
	}
	why := s.record.Why
	if s.record.Disabled && s.record.DisabledReason != "" {
		why = s.record.DisabledReason
	}
	if s.record.Broken {
		why = s.record.Fault
	}
	_, err := fmt.Fprintf(to, lsRow, plain(s.record.UID), s.status, model.FormatTime(s.record.RefreshAt), s.record.AttemptNo, plain(why))
	return err
}
