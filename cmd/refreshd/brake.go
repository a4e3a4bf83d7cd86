package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/scripts"
)

func brakeCommand(a *app) *cobra.Command {
	command := group("brake", "Hold back final failures while too many attempts fail",
		a.brakeChange("status", "Show the brake and what it has counted", func(context.Context, *scripts.Store) error { return nil }),
		brakeOnCommand(a),
		a.brakeChange("off", "Switch the brake off", tuneBrake(func(brake *model.Brake) error { brake.On = false; return nil })),
		a.brakeChange("release", "Release an engaged brake by hand", func(ctx context.Context, store *scripts.Store) error {
			return store.ReleaseBrake(ctx)
		}))
	command.Long = `When more than a share of the attempts of a queue fail within a window, the outage is taken to be on our side: no model is
disabled for it, nobody is notified, retries become rarer, and one incident stands in journal and outbox. The brake is
released when attempts succeed again, or by hand. It is off until it is switched on.`
	return command
}

// brakeChange is a command that changes the brake and shows what has become of it.
func (a *app) brakeChange(use, short string, change func(context.Context, *scripts.Store) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: a.onStore(func(ctx context.Context, store *scripts.Store, _ []string) error {
			if err := change(ctx, store); err != nil {
				return err
			}
			return a.showBrake(ctx, store)
		}),
	}
}

// tuneBrake changes the settings of the brake and leaves the others as they are.
func tuneBrake(tune func(*model.Brake) error) func(context.Context, *scripts.Store) error {
	return func(ctx context.Context, store *scripts.Store) error {
		status, err := store.Brake(ctx)
		if err != nil {
			return err
		}
		if err := tune(&status.Brake); err != nil {
			return err
		}
		return store.SetBrake(ctx, status.Brake)
	}
}

func brakeOnCommand(a *app) *cobra.Command {
	var share, window string
	var least int
	command := a.brakeChange("on", "Switch the brake on, or tune it", tuneBrake(func(brake *model.Brake) (err error) {
		brake.On = true
		if share != "" {
			if brake.Share, err = parseShare(share); err != nil {
				return err
			}
		}
		if window != "" {
			if brake.Window, err = document.ParseDuration(window); err != nil {
				return usagef("--window: %w", err)
			}
		}
		brake.Min = cmp.Or(least, brake.Min)
		if err := brake.Validate(); err != nil {
			return usagef("--%w", err)
		}
		return nil
	}))
	command.Flags().StringVar(&share, "share", "", "`SHARE` of failed attempts that engages it (default 50%)")
	command.Flags().StringVar(&window, "window", "", "`DURATION` over which attempts are counted (default 5m)")
	command.Flags().IntVar(&least, "min", 0, "attempts within the window below which nothing is concluded (default 20)")
	return command
}

// parseShare reads "50%" or "0.5".
func parseShare(text string) (float64, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	share, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, usagef("--share: expected a share such as 50%% or 0.5, found %q", text)
	}
	if percent {
		share /= 100
	}
	return share, nil
}

// brakeView is the brake as -o json shows it.
type brakeView struct {
	On        bool    `json:"on"`
	Engaged   bool    `json:"engaged"`
	EngagedAt string  `json:"engaged_at"`
	Share     float64 `json:"share"`
	Window    string  `json:"window"`
	Min       int     `json:"min"`
	Successes int64   `json:"successes"`
	Failures  int64   `json:"failures"`
	Incidents int64   `json:"incidents"`
}

func (a *app) showBrake(ctx context.Context, store *scripts.Store) error {
	s, err := store.Brake(ctx)
	if err != nil {
		return err
	}
	v := brakeView{s.On, s.Engaged, s.EngagedAt, s.Share, document.FormatDuration(s.Window), s.Min, s.Successes, s.Failures, s.Incidents}
	state := "off"
	switch {
	case v.Engaged:
		state = "engaged since " + v.EngagedAt + ": final failures are held back"
	case v.On:
		state = "on, not engaged"
	}
	return a.print(v, [][2]string{
		{"brake", state},
		{"engages", fmt.Sprintf("when %.0f%% of at least %d attempts within %s fail", v.Share*100, v.Min, v.Window)},
		{"counted", fmt.Sprintf("%d successes, %d failures within about a window", v.Successes, v.Failures)},
		{"incidents", strconv.FormatInt(v.Incidents, 10)},
	})
}
