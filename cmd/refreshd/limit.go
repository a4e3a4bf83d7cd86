package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/operate"
)

func limitCommand(a *app) *cobra.Command {
	command := group("limit", "Bound what runs of a key, such as four downloads a host",
		limitSetCommand(a),
		&cobra.Command{
			Use: "rm KEY", Short: "Forget a limit that was set", Args: cobra.ExactArgs(1),
			RunE: a.operates(func(ctx context.Context, o operate.Operator, keys []string) error { return o.RemoveLimit(ctx, keys[0]) }),
		},
		&cobra.Command{
			Use: "ls", Short: "List the limits that were set, and the keys of which something runs or waits", Args: cobra.NoArgs, RunE: a.operates(a.listLimits),
		})
	command.Long = `A policy limits the keys of its models: limits: [{key: "{host(input_url)}", running: 4, rate: 60/m}]. A limit that is set here for one key, such as
host=example.com, goes before that until it ends; one for a template, such as '{host(input_url)}', bounds all models of the queue.
In a queue of several parts each part has its share, and at least one.`
	return command
}

func limitSetCommand(a *app) *cobra.Command {
	var r operate.LimitRequest
	running := 0
	command := &cobra.Command{
		Use: "set KEY", Short: "Set a limit for a key, or for all keys of a template", Args: cobra.ExactArgs(1),
		RunE: a.operates(func(ctx context.Context, o operate.Operator, keys []string) error {
			r.Key, r.Running = keys[0], strconv.Itoa(running)
			if err := o.SetLimit(ctx, r); err != nil {
				return err
			}
			return a.listLimits(ctx, o, nil)
		}),
	}
	flags := command.Flags()
	flags.Var(count[int]{&running, "1 to 100000"}, "running", "attempts at a time (default any number)")
	flags.StringVar(&r.Rate, "rate", "", "`RATE` of starts, such as 60/m (default any)")
	flags.StringVar(&r.Reason, "reason", "", "`TEXT` for people: why")
	bindEnding(flags, &r.Ending)
	a.bindBy(flags)
	return command
}

func (a *app) listLimits(ctx context.Context, o operate.Operator, _ []string) error {
	limits, err := o.Limits(ctx)
	if err != nil {
		return err
	}
	return printList(a, limits, []any{"KEY", "RUNNING", "PARKED", "SET", "UNTIL", "BY", "REASON"}, func(l *operate.Limit) []any {
		set := l.Rate
		if l.Max > 0 {
			set = fmt.Sprintf("%d running %s", l.Max, set)
		}
		return []any{l.Key, l.Running, l.Parked, set, l.Until, l.By, l.Reason}
	})
}
