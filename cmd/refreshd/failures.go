package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

func failuresCommand(a *app) *cobra.Command {
	var r operate.FailuresRequest
	command := a.operates("failures", "Tell why models are failing: by cause, host, label or policy", cobra.NoArgs,
		func(ctx context.Context, o operate.Operator, _ []string) error {
			return table(a, []any{"MODELS", "BY", "SINCE", "LAST", "UIDS", "REASON"}, func(f *operate.Failures) []any {
				return []any{f.Models, cmp.Or(f.By, "-"), f.FirstAt, f.LastAt, cmp.Or(strings.Join(f.UIDs, " "), "-"), document.Shorten(f.Cause(), 120)}
			})(o.Failures(ctx, r))
		}, r.Validate)
	command.Long = `Tell how many models are failing by each signature: by error type and reason, without what differs from model to model, such as
"http_503: GET <url>: 503 Service Unavailable". By host, label or policy, the cause is that of most models of the line.`
	bindSelector(command.Flags(), &r.Selector)
	command.Flags().StringVar(&r.By, "by", model.SelectError, "a line for each `WHAT`: error, policy, host (of input_url), label:NAME, or a key such as {host(feed_url)}")
	command.Flags().BoolVar(&r.Past, "past", false, "by what models were failing within a day, and none is any more")
	wish := many{BulkRequest: operate.BulkRequest{Sure: true}}
	running := a.onStored("run SIGNATURE", "Run all models that are failing by a signature, as model run -l error=SIGNATURE", cobra.ExactArgs(1),
		func(ctx context.Context, o operate.Operator, ids []string) (err error) {
			if wish.Selector, err = operate.SelectFailing(ids[0]); err != nil {
				return err
			}
			return a.changeMany(ctx, o, &wish, &model.Command{Type: model.CommandRun})
		})
	running.Flags().StringVar(&wish.Rate, "rate", "", "at most so many models in a time, such as 50/s or 1/m, as `RATE` (default no bound)")
	running.Flags().BoolVar(&wish.dryRun, "dry-run", false, "change nothing; say how many models there are, and name ten")
	a.bindBy(running.Flags())
	command.AddCommand(a.operates("show SIGNATURE", "Tell all that is known of a signature, and ten models", cobra.ExactArgs(1), shows(a, operate.Operator.Failure,
		func(d *operate.FailureDetails) [][2]any {
			return [][2]any{
				{"error", d.ID}, {"signature", d.Text}, {"models", fmt.Sprint(d.Models, "  that are failing by it now")}, {"since", d.FirstAt},
				{"last", d.LastAt}, {"reason", d.Reason}, {"error type", d.ErrorType}, {"of", d.UID}, {"failures", d.Count},
				{"began", fmt.Sprint(d.Began, "  times a model began to fail by it")}, {"ended", fmt.Sprint(d.Ended, "  times one ceased to")},
				{"uids", strings.Join(d.Examples, " ")},
			}
		})), running)
	return command
}
