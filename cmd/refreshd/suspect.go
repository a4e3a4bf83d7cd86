package main

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/model"
)

func suspectCommand(a *app) *cobra.Command {
	var selector string
	list := a.operates("ls", "List the models that wait for a verdict, longest first", cobra.NoArgs,
		func(ctx context.Context, o operate.Operator, _ []string) error {
			return table(a, []any{"UID", "SINCE", "METRICS", "REASON"}, func(s *operate.Suspect) []any {
				return []any{s.UID, s.Since, cmp.Or(model.FormatMetrics(s.Metrics), "-"), s.Reason}
			})(operate.Suspects(ctx, o, selector))
		})
	bindSelector(list.Flags(), &selector)
	return group("suspect", "Judge successes that a policy doubts", list,
		a.judge("accept UID...|-l SELECTOR", "Let doubted successes count", model.CommandAccept),
		a.judge("reject UID...|-l SELECTOR", "Take held successes for failures", model.CommandReject))
}

// judge makes a command that judges the named models, or all held ones that a selector picks.
func (a *app) judge(use, short string, verdict model.CommandType) *cobra.Command {
	var selection bulkSelection
	judge := a.onStored(use, short, selection.args, func(ctx context.Context, o operate.Operator, uids []string) error {
		if selection.chosen() {
			held, err := operate.Suspects(ctx, o, selection.Selector)
			if err != nil {
				return err
			}
			uids = redis.Map(held, func(one operate.Suspect) string { return one.UID })
		}
		tally, err := o.ExecuteEach(ctx, model.Command{Type: verdict}, uids, a.printOutcomes(true))
		return cmp.Or(err, reported(tally.Refused()))
	})
	selection.bind(a, judge.Flags())
	return judge
}
