package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
)

// ending are the flags that say when something ends.
type ending struct{ until, length string }

func (e *ending) bind(flags *pflag.FlagSet) {
	flags.StringVar(&e.until, "until", "", "ends at `TIME`, as in 2026-11-24T06:00:00Z")
	flags.StringVar(&e.length, "for", "", "ends after `DURATION`, such as 2h")
}

// at is when it ends that begins at now; zero: nobody says.
func (e *ending) at(now time.Time) (time.Time, error) {
	switch {
	case e.until != "" && e.length != "":
		return time.Time{}, usagef("--until: expected it or --for, found both")
	case e.until != "":
		at, err := time.Parse(time.RFC3339, e.until)
		if err != nil || !at.After(now) {
			return at, usagef("--until: expected an RFC 3339 time after %s, found %q", model.FormatTime(now), e.until)
		}
		return at.UTC().Truncate(time.Millisecond), nil
	case e.length != "":
		length, err := document.ParseDuration(e.length)
		if err != nil || length <= 0 {
			return time.Time{}, usagef("--for: expected a length of time such as 2h, found %q", e.length)
		}
		return now.Add(length), nil
	default:
		return time.Time{}, nil
	}
}

type holding struct {
	selector, id, reason, within string
	ends                         ending
	cancel                       bool
}

func holdCommand(a *app) *cobra.Command {
	var h holding
	command := &cobra.Command{
		Use: "hold", Short: "Keep models from starting, for a while or until they are released", Args: cobra.NoArgs,
		Long: `No model that the selector picks starts from now on; without -l that is the whole queue. What is due waits, and starts once when the hold ends.
What it waits counts neither as an attempt nor towards giving up. Attempts that run are finished, or with --cancel taken back, uncounted.
refreshd hold ls shows the holds, refreshd release ends one.`,
		RunE: a.onQueue(func(ctx context.Context, queue *store.Queue, _ []string) error { return a.hold(ctx, queue, &h) }),
	}
	flags := command.Flags()
	flags.StringVarP(&h.selector, "selector", "l", "", "models that `SELECTOR` picks, such as tenant=t1 (default all)")
	flags.StringVar(&h.reason, "reason", "", "`TEXT` for people: why (required)")
	flags.StringVar(&h.id, "id", "", "`NAME` of the hold; the same again changes it (default a new one)")
	flags.StringVar(&h.within, "within", "", "spread the starts at its end over `DURATION` (default all at once)")
	flags.BoolVar(&h.cancel, "cancel", false, "take back the attempts that are queued or running, uncounted")
	h.ends.bind(flags)
	a.bindBy(flags)
	command.AddCommand(&cobra.Command{Use: "ls", Short: "List the holds", Args: cobra.NoArgs, RunE: a.onQueue(a.listHolds)})
	return command
}

func (a *app) hold(ctx context.Context, queue *store.Queue, h *holding) error {
	hold, err := a.readHolding(ctx, queue, h)
	if err != nil {
		return err
	}
	if err := queue.Fleet().PutHold(ctx, hold); err != nil {
		return fmt.Errorf("%w; in parts of the queue it may have begun: refreshd release %s ends it", err, hold.ID)
	}
	if h.cancel {
		id, err := queue.Fleet().CancelHeld(ctx, hold)
		if err == nil {
			err = a.follow(ctx, queue, id)
		}
		if err != nil {
			return err
		}
	}
	return a.printHolds([]store.HoldSum{{Hold: *hold}})
}

func (a *app) readHolding(ctx context.Context, queue *store.Queue, h *holding) (*model.Hold, error) {
	now, err := queue.Parts[0].Now(ctx)
	if err != nil {
		return nil, err
	}
	hold := &model.Hold{ID: cmp.Or(h.id, store.NewHoldID()), Since: now, Reason: h.reason}
	if h.reason == "" {
		return nil, usagef("--reason: expected why, for whoever wonders, found nothing")
	}
	if hold.Selector, err = model.ParseSelector(h.selector); err != nil {
		return nil, usageError{err}
	}
	if hold.Until, err = h.ends.at(now); err != nil {
		return nil, err
	}
	if hold.Within, err = parseWithin(h.within); err != nil {
		return nil, err
	}
	if hold.By, err = a.wantedBy(); err != nil {
		return nil, err
	}
	if err := hold.Validate(); err != nil {
		return nil, usageError{err}
	}
	return hold, nil
}

// parseWithin reads --within; empty: at once.
func parseWithin(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	within, err := document.ParseDuration(text)
	if err != nil || within < 0 || within > model.MaxWithin {
		return 0, usagef("--within: expected 0s to %s, found %q", document.FormatDuration(model.MaxWithin), text)
	}
	return within, nil
}

func releaseCommand(a *app) *cobra.Command {
	within := ""
	command := &cobra.Command{
		Use: "release [ID]", Short: "End a hold, without ID that of the whole queue or the only one: what waits for it starts once", Args: cobra.MaximumNArgs(1),
		RunE: a.onQueue(func(ctx context.Context, queue *store.Queue, ids []string) error {
			return a.release(ctx, queue, ids, within)
		}),
	}
	command.Flags().StringVar(&within, "within", "", "spread the starts over `DURATION` (default as the hold says)")
	return command
}

func (a *app) release(ctx context.Context, queue *store.Queue, ids []string, within string) error {
	spread, err := parseWithin(within)
	if err != nil {
		return err
	}
	holds, err := queue.Fleet().Holds(ctx)
	if err != nil {
		return err
	}
	holds = slices.DeleteFunc(holds, func(h store.HoldSum) bool { return h.Released || len(ids) > 0 && h.ID != ids[0] })
	if whole := slices.DeleteFunc(slices.Clone(holds), func(h store.HoldSum) bool { return !h.Selector.All() }); len(whole) == 1 {
		holds = whole
	}
	switch {
	case len(holds) == 0 && len(ids) > 0:
		return fmt.Errorf("%s: expected the id of a hold, found none of that name; refreshd hold ls shows them", plain(ids[0]))
	case len(holds) == 0:
		return fmt.Errorf("expected a hold, found none")
	case len(holds) > 1:
		var names []string
		for _, v := range holds {
			names = append(names, v.ID)
		}
		return usagef("expected the id of one of the holds %s, found nothing", strings.Join(names, ", "))
	}
	hold := holds[0]
	if within == "" {
		spread = hold.Within
	}
	released, err := queue.Fleet().ReleaseHold(ctx, hold.ID, spread)
	if err == nil && !released {
		err = fmt.Errorf("%s: expected a hold, found that it has ended", hold.ID)
	}
	if err != nil {
		return err
	}
	return a.print(map[string]any{"id": hold.ID, "released": true, "parked": hold.Parked}, [][2]string{
		{"released", hold.ID}, {"parked", words.Count(int(hold.Parked), "model starts", "models start") + " within " + document.FormatDuration(max(spread, time.Second))},
	})
}

// holdView is a hold as -o json shows it; of a queue of several parts, in all of them.
type holdView struct {
	ID       string  `json:"id"`
	Selector string  `json:"selector"` // "": the whole queue
	Since    *string `json:"since"`
	Until    *string `json:"until"`
	Within   string  `json:"within"`
	Reason   string  `json:"reason"`
	By       string  `json:"by"`
	Ended    bool    `json:"ended"`  // its models are being let go
	Parked   int64   `json:"parked"` // models that wait for it
}

func newHoldView(h *store.HoldSum) holdView {
	return holdView{
		ID: h.ID, Selector: h.Selector.String(), Since: optional(h.Since), Until: optional(h.Until), Within: document.FormatDuration(h.Within),
		Reason: h.Reason, By: h.By, Ended: h.Released, Parked: h.Parked,
	}
}

func (a *app) listHolds(ctx context.Context, queue *store.Queue, _ []string) error {
	holds, err := queue.Fleet().Holds(ctx)
	if err != nil {
		return err
	}
	return a.printHolds(holds)
}

func (a *app) printHolds(holds []store.HoldSum) error {
	if a.json() {
		return printJSONLines(a.stdout, holds, func(h *store.HoldSum) any { return newHoldView(h) })
	}
	t := a.newTable("HOLD", "MODELS", "SINCE", "UNTIL", "PARKED", "BY", "REASON")
	for i := range holds {
		v, until := newHoldView(&holds[i]), "released"
		if v.Until != nil {
			until = *v.Until
		}
		if v.Ended {
			until = "letting go"
		}
		t.row(v.ID, cmp.Or(v.Selector, "all"), *v.Since, until, fmt.Sprint(v.Parked), v.By, v.Reason)
	}
	return t.Flush()
}
