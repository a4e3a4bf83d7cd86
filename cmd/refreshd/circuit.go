package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

func circuitCommand(a *app) *cobra.Command {
	closing := &cobra.Command{
		Use: "close KEY", Short: "Close a circuit by hand: its models start again", Args: cobra.ExactArgs(1),
		RunE: a.operates(func(ctx context.Context, o operate.Operator, keys []string) error {
			return o.CloseCircuit(ctx, keys[0])
		}),
	}
	a.bindBy(closing.Flags())
	command := group("circuit", "Stop the models of a key that fails, until a probe is answered",
		&cobra.Command{
			Use: "ls", Short: "List the circuits that have counted anything within a week, open ones first", Args: cobra.NoArgs, RunE: a.operates(a.listCircuits),
		},
		&cobra.Command{Use: "show KEY", Short: "Show a circuit and what it has counted", Args: cobra.ExactArgs(1), RunE: a.operates(a.showCircuit)},
		circuitOpenCommand(a), closing, circuitSetCommand(a))
	command.Long = `A policy opens the circuit of a key when too many of its last attempts fail: circuit: {key: "{host(input_url)}", open_after: 5 of 10, on: [network,
http_5xx, timeout], probe: 5m}. Its models wait then, and nothing is counted, until one ordinary attempt, the probe, is answered.

The circuit of the whole queue has the key queue. It is off until refreshd circuit set queue --on. When more than a share of the attempts of the
queue fail within a window, the outage is taken to be on our side, and it opens: no model is disabled and retries become rarer, but nothing waits for
it. It closes when attempts succeed again. Each part of a queue measures for itself; they have one setting.`
	return command
}

func circuitOpenCommand(a *app) *cobra.Command {
	var probe, reason string
	command := &cobra.Command{
		Use: "open KEY", Short: "Open a circuit by hand, until a probe is answered", Args: cobra.ExactArgs(1),
		Long: `Open a circuit by hand. After --probe one of its models may try it, and an answer closes it. That of the queue closes then if attempts have succeeded
since it was opened; while it is off, it is closed by hand only. To open an open one sets when it is tried.`,
		RunE: a.operates(func(ctx context.Context, o operate.Operator, keys []string) error {
			if _, err := o.OpenCircuit(ctx, keys[0], probe, reason); err != nil {
				return err
			}
			return a.showCircuit(ctx, o, keys)
		}),
	}
	command.Flags().StringVar(&probe, "probe", "", "`DURATION` until it may be tried (default "+document.FormatDuration(policy.DefaultProbe)+"; of queue its window)")
	command.Flags().StringVar(&reason, "reason", "", "`TEXT` for people: why")
	a.bindBy(command.Flags())
	return command
}

func circuitSetCommand(a *app) *cobra.Command {
	var s operate.CircuitSettings
	command := &cobra.Command{
		Use: "set queue", Short: "Set when the circuit of the queue opens, and switch it on or off", Args: cobra.ExactArgs(1),
		RunE: a.operates(func(ctx context.Context, o operate.Operator, keys []string) error {
			if err := o.SetCircuit(ctx, keys[0], s); err != nil {
				return err
			}
			return a.showCircuit(ctx, o, keys)
		}),
	}
	flags := command.Flags()
	flags.BoolVar(&s.On, "on", false, "let it open and close by itself")
	flags.BoolVar(&s.Off, "off", false, "switch it off; if it is open, it closes")
	command.MarkFlagsMutuallyExclusive("on", "off")
	flags.StringVar(&s.Share, "share", "", "`SHARE` of failed attempts that opens it (default 50%)")
	flags.StringVar(&s.Window, "window", "", "`DURATION` over which attempts are counted (default 5m)")
	flags.IntVar(&s.Min, "min", 0, "attempts within the window below which it does not open (default 20)")
	a.bindBy(flags)
	return command
}

func (a *app) listCircuits(ctx context.Context, o operate.Operator, _ []string) error {
	circuits, err := o.Circuits(ctx)
	if err != nil {
		return err
	}
	header := []any{"KEY", "STATE", "SINCE", "NEXT PROBE", "PROBED BY", "PARKED", "LAST ATTEMPTS", "BY", "REASON"}
	return printList(a, circuits, header, func(c *operate.Circuit) []any {
		return []any{c.Key, c.State(), c.OpenedAt, c.ProbeAt, c.Probe, c.Parked, drawAttempts(c), c.By, c.Reason}
	})
}

// drawAttempts draws how the last attempts ended, oldest first.
func drawAttempts(c *operate.Circuit) string {
	return strings.NewReplacer("0", "+", "1", "-").Replace(c.Recent)
}

func (a *app) showCircuit(ctx context.Context, o operate.Operator, keys []string) error {
	c, err := o.Circuit(ctx, keys[0])
	if err != nil {
		return err
	}
	state, parts := c.State(), ""
	if c.Open {
		state += " since " + model.FormatTime(c.OpenedAt)
	}
	if c.OpenParts != nil {
		parts = fmt.Sprintf("%d, %d of them open", c.Parts, c.OpenParts.OpenParts)
	}
	pairs := [][2]any{
		{"circuit", c.Key}, {"state", state}, {"parts", parts}, {"by", c.By}, {"reason", c.Reason}, {"next probe", c.ProbeAt}, {"probed by", c.Probe},
		{"parked", mark(c.Parked > 0, fmt.Sprint(c.Parked))}, {"last attempts", drawAttempts(&c)}, {"times opened", c.Opened},
	}
	if c.QueueCircuit != nil {
		opens := fmt.Sprintf("when %.0f%% of at least %d attempts within %s fail", c.Share*100, c.Min, document.FormatDuration(c.Window))
		pairs = append(pairs, [][2]any{
			{"opens", mark(!c.On, "by hand only; switched on, ") + opens},
			{"counted", fmt.Sprintf("%d successes, %d failures within about a window", c.Successes, c.Failures)},
			{"while open", "final failures are held back, and retries are rarer"},
		}...)
	}
	return a.print(c, pairs)
}
