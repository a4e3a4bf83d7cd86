package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/store"
)

func bulkCommand(a *app) *cobra.Command {
	command := group("bulk", "Look at what is being done to many models at once, and cancel it",
		&cobra.Command{Use: "ls", Short: "List the bulks that are not over, and those that were within a day", Args: cobra.NoArgs, RunE: a.operates(a.listBulks)},
		&cobra.Command{Use: "show ID", Short: "Show how far a bulk is", Args: cobra.ExactArgs(1), RunE: a.operates(a.showBulk)},
		&cobra.Command{
			Use: "cancel ID", Short: "End a bulk; what it has done stays done", Args: cobra.ExactArgs(1),
			RunE: a.operates(func(ctx context.Context, o operate.Operator, ids []string) error {
				bulk, err := o.CancelBulk(ctx, ids[0])
				if err != nil {
					return err
				}
				return a.printText(&bulk)
			}),
		})
	command.Long = `refreshd model run, enable, disable and rm with -l begin a bulk: a wish about all models that a selector picks. Pollers carry it out little by
little, at the rate that was asked for, and go on where they were when they are restarted. A policy whose rule has changed begins one too.`
	return command
}

func (a *app) listBulks(ctx context.Context, o operate.Operator, _ []string) error {
	bulks, err := o.Bulks(ctx)
	if err != nil {
		return err
	}
	return printList(a, bulks, []any{"ID", "STATE", "SINCE", "BY", "SEEN", "PICKED", "DONE", "REFUSED", "SELECTOR"}, func(b *operate.Bulk) []any {
		return []any{b.ID, b.State, b.Since, b.By, b.Seen, b.Picked, b.Done, b.Refused, cmp.Or(b.Selector, "all")}
	})
}

func (a *app) showBulk(ctx context.Context, o operate.Operator, ids []string) error {
	b, err := o.Bulk(ctx, ids[0])
	if err != nil {
		return err
	}
	pairs := [][2]any{
		{"id", b.ID}, {"state", b.State}, {"problem", b.Problem}, {"action", b.Action}, {"selector", cmp.Or(b.Selector, "all models")}, {"rate", b.Rate},
		{"force", mark(b.Force, "yes")}, {"by", b.By}, {"since", b.Since}, {"ended", b.EndedAt},
		{"seen", fmt.Sprint(b.Seen) + mark(b.Size > 0, fmt.Sprintf(" of about %d", b.Size))}, {"picked", b.Picked}, {"done", b.Done}, {"refused", b.Refused},
	}
	for _, outcome := range slices.Sorted(maps.Keys(b.Others)) {
		pairs = append(pairs, [2]any{strings.ReplaceAll(string(outcome), "_", " "), b.Others[outcome]})
	}
	return a.print(b, pairs)
}

// pollEvery is how often a command asks how far its bulk is.
const pollEvery = 200 * time.Millisecond

// follow shows how far a bulk is until it is over. If it is interrupted, the bulk goes on.
func (a *app) follow(ctx context.Context, o operate.Operator, id string) error {
	b, err := a.awaitBulk(ctx, o, id)
	switch {
	case err == nil:
		err = a.printText(&b)
	case ctx.Err() != nil:
		return fmt.Errorf("interrupted; the bulk goes on: refreshd bulk show %s tells how far it is, refreshd bulk cancel %s ends it", id, id)
	default:
		return fmt.Errorf("%w; the bulk goes on: refreshd bulk show %s", err, id)
	}
	if err == nil && b.State == store.BulkCancelled {
		err = fmt.Errorf("%s: expected to end it, found that somebody has cancelled it", b.ID)
	}
	return err
}

// awaitBulk asks for a bulk until it is over.
func (a *app) awaitBulk(ctx context.Context, o operate.Operator, id string) (operate.Bulk, error) {
	missing, err := o.MissingPollers(ctx)
	if err != nil {
		return operate.Bulk{}, err
	}
	for _, part := range missing {
		a.complain(part + ": no poller lives; the bulk waits until one begins")
	}
	bar := a.bulkBar()
	for {
		b, err := o.Bulk(ctx, id)
		if err != nil {
			return b, err
		}
		bar.show(b)
		if b.State != store.BulkRunning {
			bar.end()
			return b, nil
		}
		timer := time.NewTimer(pollEvery)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// bulkBar shows a bulk on the terminal; nil: there is none for it.
type bulkBar struct{ *progressbar.ProgressBar }

func (a *app) bulkBar() *bulkBar {
	errors, is := a.stderr.(*os.File)
	if !is || !isTerminal(errors) {
		return nil
	}
	return &bulkBar{progressbar.NewOptions64(-1, progressbar.OptionSetWriter(errors), progressbar.OptionSetPredictTime(true), progressbar.OptionShowCount(),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionFullWidth(), progressbar.OptionClearOnFinish())}
}

func (b *bulkBar) show(v operate.Bulk) {
	if b == nil {
		return
	}
	if v.Size > 0 {
		b.ChangeMax64(max(v.Size, v.Seen))
	}
	b.Describe(fmt.Sprintf("%s: %d done, %d refused", v.ID, v.Done, v.Refused))
	_ = b.Set64(v.Seen) // a bar that cannot be drawn is no failure
}

func (b *bulkBar) end() {
	if b != nil {
		_ = b.Finish()
	}
}
