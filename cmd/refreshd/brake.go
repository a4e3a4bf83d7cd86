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
		a.brakeChange("status", "Show the brake and what it has counted", func(context.Context, *scripts.Queue) error { return nil }),
		brakeOnCommand(a),
		a.brakeChange("off", "Switch the brake off", tuneBrake(func(brake *model.Brake) error { brake.On = false; return nil })),
		a.brakeChange("release", "Release an engaged brake by hand", func(ctx context.Context, queue *scripts.Queue) error {
			return queue.Each(func(part *scripts.Store) error { return part.ReleaseBrake(ctx) })
		}))
	command.Long = `When more than a share of the attempts of a queue fail within a window, the outage is taken to be on our side: no model is
disabled for it, nobody is notified, retries become rarer, and one incident stands in journal and outbox. The brake is
released when attempts succeed again, or by hand. It is off until it is switched on. Each part of a queue measures for itself
and is engaged by itself; they have one setting.`
	return command
}

// brakeChange is a command that changes the brake and shows what has become of it.
func (a *app) brakeChange(use, short string, change func(context.Context, *scripts.Queue) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: a.onQueue(func(ctx context.Context, queue *scripts.Queue, _ []string) error {
			if err := change(ctx, queue); err != nil {
				return err
			}
			return a.showBrake(ctx, queue)
		}),
	}
}

// tuneBrake changes the settings of the brake and leaves the others as they are.
func tuneBrake(tune func(*model.Brake) error) func(context.Context, *scripts.Queue) error {
	return func(ctx context.Context, queue *scripts.Queue) error {
		status, err := queue.Parts[0].Brake(ctx)
		if err != nil {
			return err
		}
		if err := tune(&status.Brake); err != nil {
			return err
		}
		return queue.SetBrake(ctx, status.Brake)
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
	*brakeParts
}

// brakeParts tells of the brakes of a queue of several parts.
type brakeParts struct {
	Parts        int `json:"parts"`
	EngagedParts int `json:"engaged_parts"`
}

// readBrake shows the brakes of all parts as one, with the settings of the first. It is engaged if any is, since the first of them.
func readBrake(ctx context.Context, queue *scripts.Queue) (v brakeView, err error) {
	engaged := 0
	err = queue.Each(func(part *scripts.Store) error {
		s, err := part.Brake(ctx)
		if part == queue.Parts[0] {
			v.On, v.Share, v.Window, v.Min = s.On, s.Share, document.FormatDuration(s.Window), s.Min
		}
		v.Successes, v.Failures, v.Incidents = v.Successes+s.Successes, v.Failures+s.Failures, v.Incidents+s.Incidents
		if s.Engaged {
			engaged++
			v.Engaged = true
		}
		if v.EngagedAt == "" || s.EngagedAt != "" && s.EngagedAt < v.EngagedAt { // as texts, which are ordered like the times
			v.EngagedAt = s.EngagedAt
		}
		return err
	})
	if parts := len(queue.Parts); parts > 1 {
		v.brakeParts = &brakeParts{parts, engaged}
	}
	return v, err
}

func (a *app) showBrake(ctx context.Context, queue *scripts.Queue) error {
	v, err := readBrake(ctx, queue)
	if err != nil {
		return err
	}
	state, parts := "off", ""
	switch {
	case v.Engaged:
		state = "engaged since " + v.EngagedAt + ": final failures are held back"
	case v.On:
		state = "on, not engaged"
	}
	if v.brakeParts != nil {
		parts = fmt.Sprintf("%d, %d of them engaged", v.Parts, v.EngagedParts)
	}
	return a.print(v, [][2]string{
		{"brake", state}, {"parts", parts},
		{"engages", fmt.Sprintf("when %.0f%% of at least %d attempts within %s fail", v.Share*100, v.Min, v.Window)},
		{"counted", fmt.Sprintf("%d successes, %d failures within about a window", v.Successes, v.Failures)},
		{"incidents", strconv.FormatInt(v.Incidents, 10)},
	})
}
