package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/operate"
)

func bulkCommand(a *app) *cobra.Command {
	command := group("bulk", "Look at what is being done to many models at once, and cancel it",
		lists(a, "List the bulks that are not over, and those that were within a day", operate.Operator.Bulks,
			[]any{"ID", "STATE", "SINCE", "BY", "SEEN", "PICKED", "DONE", "REFUSED", "SELECTOR"}, func(b *operate.Bulk) []any {
				return []any{b.ID, b.State, b.Since, b.By, b.Seen, b.Picked, b.Done, b.Refused, cmp.Or(b.Selector, "all")}
			}),
		a.operates("show ID", "Show how far a bulk is", cobra.ExactArgs(1), shows(a, operate.Operator.Bulk, bulkPairs)),
		a.operates("cancel ID", "End a bulk; what it has done stays done", cobra.ExactArgs(1),
			func(ctx context.Context, o operate.Operator, ids []string) error {
				return result(a, a.printBulk)(o.CancelBulk(ctx, ids[0]))
			}))
	command.Long = `refreshd model run, enable, disable and rm with -l begin a bulk: a wish about all models that a selector picks. Pollers carry it out little by
little, at the rate that was asked for, and go on where they were when they are restarted. A policy whose rule has changed begins one too.`
	return command
}

func bulkPairs(b *operate.Bulk) [][2]any {
	pairs := [][2]any{
		{"id", b.ID}, {"state", b.State}, {"problem", b.Problem}, {"action", b.Action}, {"selector", cmp.Or(b.Selector, "all models")}, {"rate", b.Rate},
		{"force", mark(b.Force, "yes")}, {"by", b.By}, {"since", b.Since}, {"ended", b.EndedAt},
		{"seen", fmt.Sprint(b.Seen) + mark(b.Size > 0, fmt.Sprintf(" of about %d", b.Size))}, {"picked", b.Picked}, {"done", b.Done}, {"refused", b.Refused},
	}
	for _, outcome := range slices.Sorted(maps.Keys(b.Others)) {
		pairs = append(pairs, [2]any{strings.ReplaceAll(string(outcome), "_", " "), b.Others[outcome]})
	}
	return pairs
}

func (a *app) printBulk(b *operate.Bulk) error {
	_, err := fmt.Fprintln(a.stdout, b)
	return err
}

// follow prints the progress of a bulk until it is over. An interrupt does not stop the bulk.
func (a *app) follow(ctx context.Context, o operate.Operator, id string) error {
	bar := a.progressOn(nil, -1, progressbar.OptionShowCount())
	b, err := o.AwaitBulk(ctx, id, func(b operate.Bulk) {
		if bar == nil {
			return
		}
		if b.Size > 0 {
			bar.ChangeMax64(max(b.Size, b.Seen))
		}
		bar.Describe(fmt.Sprintf("%s: %d done, %d refused", b.ID, b.Done, b.Refused))
		_ = bar.Set64(b.Seen) // a bar that cannot be drawn is no failure
	}, a.report)
	if err != nil {
		return err
	}
	if bar != nil {
		_ = bar.Finish()
	}
	if !a.json() {
		fmt.Fprint(a.stderr, operate.WhereNow(ctx, o, &b))
	}
	if err := result(a, a.printBulk)(b, nil); err != nil || !b.Cancelled() {
		return a.warnOfNoMatch(ctx, o, b.Selector, b.Picked == 0, err)
	}
	return fmt.Errorf("%s: expected to end it, found that somebody has cancelled it", b.ID)
}
