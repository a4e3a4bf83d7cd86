package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/model"
)

func freshnessCommand(a *app) *cobra.Command {
	var r operate.FreshnessRequest
	command := &cobra.Command{
		Use: "freshness", Short: "Tell how many models are as fresh as their policies promise, and which are stale for longest", Args: cobra.NoArgs,
		Long: `Tell how many models are fresh, late and stale, and how many have never succeeded yet, by fresh_within and warn_within of their policies, and which ten are stale for longest.
Indexes answer that at once; --selector and --histogram look at each model that they concern.

--at tells how it was, by undoing what the journal has told since; it reaches back as far as the journal does.`,
		RunE: a.onStored(func(ctx context.Context, o operate.Operator, _ []string) error {
			found, err := o.Freshness(ctx, r)
			if err != nil {
				return err
			}
			return a.printFreshness(&found)
		}),
	}
	bindSelector(command.Flags(), &r.Selector)
	command.Flags().StringVar(&r.At, "at", "", "how it was at `TIME` (RFC 3339), by the journal")
	command.Flags().BoolVar(&r.Histogram, "histogram", false, "also count models by the time since their last success")
	return command
}

func (a *app) printFreshness(v *operate.Freshness) error {
	if a.json() {
		return a.printJSON(v)
	}
	if v.Watched == 0 {
		fmt.Fprintln(a.stdout, "no model is watched: no policy in use has fresh_within")
		return nil
	}
	fmt.Fprintf(a.stdout, "%s: %s\n", model.FormatTime(v.At), v.FreshnessShare)
	t := a.newTable()
	if len(v.Worst) > 0 {
		t.Row("UID", "STALE FOR", "LAST SUCCESS", "WHY")
	}
	for _, one := range v.Worst {
		last := cmp.Or(model.FormatTime(one.LastSuccessAt), "never")
		t.Row(one.UID, one.For, last, one.Why)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	t = a.newTable()
	if v.Histogram == nil {
		return nil
	}
	t.Row("SUCCESS WITHIN", "MODELS", "")
	for _, bucket := range *v.Histogram {
		t.Row(bucket.UpTo, bucket.Models, strings.Repeat("#", int(40*bucket.Models/max(1, v.Watched))))
	}
	return t.Flush()
}
