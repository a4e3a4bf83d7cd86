package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

func limitCommand(a *app) *cobra.Command {
	command := group("limit", "Bound what runs of a key, such as four downloads a host",
		limitSetCommand(a),
		&cobra.Command{Use: "rm KEY", Short: "Forget a limit that was set", Args: cobra.ExactArgs(1), RunE: a.onQueue(a.removeLimit)},
		&cobra.Command{Use: "ls", Short: "List the limits that were set, and the keys of which something runs or waits", Args: cobra.NoArgs, RunE: a.onQueue(a.listLimits)})
	command.Long = `A policy limits the keys of its models: limits: [{key: "{host(input_url)}", running: 4, rate: 60/m}]. A limit that is set here for one key, such as
host=example.com, goes before that until it ends; one for a template, such as '{host(input_url)}', bounds all models of the queue.
In a queue of several parts each part has its share, and at least one.`
	return command
}

func limitSetCommand(a *app) *cobra.Command {
	var limit model.Limit
	var rate string
	var ends ending
	command := &cobra.Command{
		Use: "set KEY", Short: "Set a limit for a key, or for all keys of a template", Args: cobra.ExactArgs(1),
		RunE: a.onQueue(func(ctx context.Context, queue *store.Queue, names []string) error {
			limit.Name = names[0]
			return a.setLimit(ctx, queue, &limit, rate, ends)
		}),
	}
	flags := command.Flags()
	flags.Var(count[int]{&limit.Running, "1 to 100000"}, "running", "attempts at a time (default any number)")
	flags.StringVar(&rate, "rate", "", "`RATE` of starts, such as 60/m (default any)")
	flags.StringVar(&limit.Reason, "reason", "", "`TEXT` for people: why")
	ends.bind(flags)
	a.bindBy(flags)
	return command
}

func (a *app) setLimit(ctx context.Context, queue *store.Queue, limit *model.Limit, rate string, ends ending) (err error) {
	if rate != "" {
		if limit.Rate, err = policy.ParseRate(rate); err != nil {
			return usagef("--rate: %w", err)
		}
	}
	if limit.Since, err = queue.Parts[0].Now(ctx); err != nil {
		return err
	}
	if limit.Until, err = ends.at(limit.Since); err != nil {
		return err
	}
	if limit.By, err = a.wantedBy(); err != nil {
		return err
	}
	if err := limit.Validate(); err != nil {
		return usageError{err}
	}
	if err := queue.Fleet().PutLimit(ctx, limit); err != nil {
		return err
	}
	return a.listLimits(ctx, queue, nil)
}

func (a *app) removeLimit(ctx context.Context, queue *store.Queue, names []string) error {
	removed, err := queue.Fleet().RemoveLimit(ctx, names[0])
	if err == nil && !removed {
		err = fmt.Errorf("%s: expected a limit that was set, found none of that name", plain(names[0]))
	}
	return err
}

// limitView is a limit that was set, or a key of which something runs or waits, as -o json shows it; in all parts of the queue.
type limitView struct {
	Key     string  `json:"key"`
	Set     bool    `json:"set"` // at run time
	Most    int     `json:"most"`
	Rate    string  `json:"rate"`
	Until   *string `json:"until"`
	By      string  `json:"by"`
	Reason  string  `json:"reason"`
	Running int64   `json:"running"`
	Parked  int64   `json:"parked"`
	Next    *string `json:"next_start_at"` // of its rate, or when a worker asked to be left alone until
}

func readLimits(ctx context.Context, queue *store.Queue) ([]limitView, error) {
	uses, err := queue.Fleet().LimitUses(ctx)
	views := make([]limitView, len(uses))
	for i, use := range uses {
		l := use.Limit
		views[i] = limitView{l.Name, use.Set, l.Running, l.Rate.String(), optional(l.Until), l.By, l.Reason, use.Running, use.Parked, optional(use.Free)}
	}
	return views, err
}

func (a *app) listLimits(ctx context.Context, queue *store.Queue, _ []string) error {
	views, err := readLimits(ctx, queue)
	if err != nil {
		return err
	}
	if a.json() {
		return printJSONLines(a.stdout, views, func(v *limitView) any { return *v })
	}
	t := a.newTable("KEY", "RUNNING", "PARKED", "SET", "UNTIL", "BY", "REASON")
	for _, v := range views {
		set, until := "", ""
		if v.Most > 0 {
			set = fmt.Sprintf("%d running ", v.Most)
		}
		if v.Until != nil {
			until = *v.Until
		}
		t.row(v.Key, fmt.Sprint(v.Running), fmt.Sprint(v.Parked), set+v.Rate, until, v.By, v.Reason)
	}
	return t.Flush()
}
