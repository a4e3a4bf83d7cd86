package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

func circuitSetCommand(a *app) *cobra.Command {
	var share, window string
	var least int
	var on, off bool
	command := &cobra.Command{
		Use: "set queue", Short: "Set when the circuit of the queue opens, and switch it on or off", Args: cobra.ExactArgs(1),
		RunE: a.onQueue(func(ctx context.Context, queue *store.Queue, keys []string) error {
			if keys[0] != model.QueueCircuitKey {
				return usagef("expected queue, as the circuits of other keys are set in policies, found %q", keys[0])
			}
			by, err := a.wantedBy()
			if err != nil {
				return err
			}
			status, err := queue.Parts[0].QueueCircuit(ctx)
			if err != nil {
				return err
			}
			circuit := status.QueueCircuit // what is not named stays
			circuit.On = (circuit.On || on) && !off
			if share != "" {
				if circuit.Share, err = parseShare(share); err != nil {
					return err
				}
			}
			if window != "" {
				if circuit.Window, err = document.ParseDuration(window); err != nil {
					return usagef("--window: %w", err)
				}
			}
			circuit.Min = cmp.Or(least, circuit.Min)
			if err := circuit.Validate(); err != nil {
				return usagef("--%w", err)
			}
			if err := queue.Fleet().SetQueueCircuit(ctx, circuit, by); err != nil {
				return err
			}
			return a.showCircuit(ctx, queue, keys)
		}),
	}
	flags := command.Flags()
	flags.BoolVar(&on, "on", false, "let it open and close by itself")
	flags.BoolVar(&off, "off", false, "switch it off; if it is open, it closes")
	command.MarkFlagsMutuallyExclusive("on", "off")
	flags.StringVar(&share, "share", "", "`SHARE` of failed attempts that opens it (default 50%)")
	flags.StringVar(&window, "window", "", "`DURATION` over which attempts are counted (default 5m)")
	flags.IntVar(&least, "min", 0, "attempts within the window below which it does not open (default 20)")
	a.bindBy(flags)
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

// queueCircuitView is what the circuit of a queue has beside others.
type queueCircuitView struct {
	On        bool    `json:"on"`
	Share     float64 `json:"share"`
	Window    string  `json:"window"`
	Min       int     `json:"min"`
	Successes int64   `json:"successes"`
	Failures  int64   `json:"failures"`
}

func readQueueCircuit(ctx context.Context, queue *store.Queue) (*queueCircuitView, error) {
	s, err := queue.Fleet().QueueCircuit(ctx)
	return &queueCircuitView{s.On, s.Share, document.FormatDuration(s.Window), s.Min, s.Successes, s.Failures}, err
}

// pairs are what refreshd circuit show says of the circuit of the queue only.
func (v *queueCircuitView) pairs() [][2]string {
	if v == nil {
		return nil
	}
	opens := fmt.Sprintf("when %.0f%% of at least %d attempts within %s fail", v.Share*100, v.Min, v.Window)
	if !v.On {
		opens = "by hand only; switched on, " + opens
	}
	return [][2]string{
		{"opens", opens}, {"counted", fmt.Sprintf("%d successes, %d failures within about a window", v.Successes, v.Failures)},
		{"while open", "final failures are held back, and retries are rarer"},
	}
}
