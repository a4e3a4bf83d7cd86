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
	command := a.operates("failures", "Show why models are failing: by fingerprint, host, label or policy", oneOfCommands("show", "run"),
		func(ctx context.Context, o operate.Operator, _ []string) error {
			return table(a, []any{"MODELS", "BY", "SINCE", "LAST", "UIDS", "REASON"}, func(f *operate.Failures) []any {
				return []any{f.Models, cmp.Or(f.By, "-"), f.FirstAt, f.LastAt, cmp.Or(strings.Join(f.UIDs, " "), "-"), document.Shorten(f.Summary(), 120)}
			})(o.Failures(ctx, r))
		}, r.Validate)
	command.Long = `Show how many models are failing with each fingerprint: error type and reason, without what differs from model to model, such as
"http_503: GET <url>: 503 Service Unavailable". By host, label or policy, each line shows the fingerprint of most of its models.`
	bindSelector(command.Flags(), &r.Selector)
	command.Flags().StringVar(&r.By, "by", operate.ByFingerprint, "a line for each `WHAT`: fingerprint, policy, host (of input_url), label:NAME, or a key such as {host(feed_url)}")
	command.Flags().BoolVar(&r.Past, "past", false, "fingerprints with which models failed within a day, and none does any more")
	wish := bulkSelection{BulkRequest: operate.BulkRequest{Sure: true}}
	running := a.onStored("run FINGERPRINT", "Run all models that fail with a fingerprint, as model run -l error=FINGERPRINT", cobra.ExactArgs(1),
		func(ctx context.Context, o operate.Operator, ids []string) (err error) {
			if wish.Selector, err = operate.SelectFailing(ids[0]); err != nil {
				return err
			}
			return a.changeSelection(ctx, o, &wish, &model.Command{Type: model.CommandRun})
		})
	running.Flags().StringVar(&wish.Rate, "rate", "", "at most so many models in a time, such as 50/s or 1/m, as `RATE` (default no bound)")
	running.Flags().BoolVar(&wish.dryRun, "dry-run", false, "change nothing; say how many models there are, and name ten")
	a.bindBy(running.Flags())
	command.AddCommand(a.operates("show FINGERPRINT", "Show a fingerprint, and ten of its models", cobra.ExactArgs(1), shows(a, operate.Operator.Failure,
		func(d *operate.FailureDetails) [][2]any {
			return [][2]any{
				{"id", d.ID}, {"fingerprint", d.Text}, {"models", fmt.Sprint(d.Models, "  that fail with it now")}, {"since", d.FirstAt},
				{"last", d.LastAt}, {"reason", d.Reason}, {"error type", d.ErrorType}, {"of", d.UID}, {"failures", d.Count},
				{"began", fmt.Sprint(d.Began, "  times a model began to fail with it")}, {"ended", fmt.Sprint(d.Ended, "  times one stopped")},
				{"uids", strings.Join(d.Examples, " ")},
			}
		})), running)
	return command
}
