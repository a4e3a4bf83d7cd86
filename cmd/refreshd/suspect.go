package main

import (
	"cmp"
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/operate"
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

// judge is a command that decides about the models named on the command line, or about all held ones that a selector picks.
func (a *app) judge(use, short string, verdict model.CommandType) *cobra.Command {
	var selector string
	var command *cobra.Command
	chosen := func() bool { return command.Flags().Changed("selector") }
	command = a.onStored(use, short, func(_ *cobra.Command, uids []string) error {
		switch {
		case chosen() && len(uids) > 0:
			return errors.New("expected uids or a selector, found both")
		case chosen():
			return nil
		}
		return uidArgs(nil, uids)
	}, func(ctx context.Context, o operate.Operator, uids []string) error {
		if chosen() {
			held, err := operate.Suspects(ctx, o, selector)
			if err != nil {
				return err
			}
			for _, one := range held {
				uids = append(uids, one.UID)
			}
		}
		tally, err := o.Steer(ctx, model.Command{Type: verdict}, uids, a.tellOutcomes(true))
		if err != nil {
			return err
		}
		return reported(tally.Refused())
	})
	a.bindBy(command.Flags())
	bindSelector(command.Flags(), &selector)
	return command
}
