package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

func circuitCommand(a *app) *cobra.Command {
	closing := &cobra.Command{Use: "close KEY", Short: "Close a circuit by hand: its models start again", Args: cobra.ExactArgs(1), RunE: a.onQueue(a.closeCircuit)}
	a.bindBy(closing.Flags())
	command := group("circuit", "Stop the models of a key that fails, until a probe is answered",
		&cobra.Command{Use: "ls", Short: "List the circuits that have counted anything within a week, open ones first", Args: cobra.NoArgs, RunE: a.onQueue(a.listCircuits)},
		&cobra.Command{Use: "show KEY", Short: "Show a circuit and what it has counted", Args: cobra.ExactArgs(1), RunE: a.onQueue(a.showCircuit)},
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
		RunE: a.onQueue(func(ctx context.Context, queue *store.Queue, keys []string) error {
			if strings.HasPrefix(keys[0], "{") || !strings.Contains(keys[0], "=") && keys[0] != model.QueueCircuitKey {
				return usagef("expected a key such as host=example.com, or queue, found %q", keys[0])
			}
			after := policy.DefaultProbe
			if keys[0] == model.QueueCircuitKey {
				circuit, err := queue.Parts[0].QueueCircuit(ctx)
				if err != nil {
					return err
				}
				after = circuit.Window
			}
			if probe != "" {
				var err error
				if after, err = document.ParseDuration(probe); err != nil || after <= 0 {
					return usagef("--probe: expected a length of time such as 5m, found %q", probe)
				}
			}
			by, err := a.wantedBy()
			if err != nil {
				return err
			}
			if _, err := queue.Fleet().OpenCircuit(ctx, keys[0], by, reason, after); err != nil {
				return err
			}
			return a.showCircuit(ctx, queue, keys)
		}),
	}
	command.Flags().StringVar(&probe, "probe", "", "`DURATION` until it may be tried (default "+document.FormatDuration(policy.DefaultProbe)+"; of queue its window)")
	command.Flags().StringVar(&reason, "reason", "", "`TEXT` for people: why")
	a.bindBy(command.Flags())
	return command
}

func (a *app) closeCircuit(ctx context.Context, queue *store.Queue, keys []string) error {
	by, err := a.wantedBy()
	if err != nil {
		return err
	}
	closed, err := queue.Fleet().CloseCircuit(ctx, keys[0], by)
	if err == nil && !closed && keys[0] != model.QueueCircuitKey { // that one forgets what it has counted in any case
		err = fmt.Errorf("%s: expected the key of an open circuit, found none of that name", plain(keys[0]))
	}
	return err
}

// circuitView is a circuit as -o json shows it; of a queue of several parts the one that opened first.
type circuitView struct {
	Key      string  `json:"key"`
	Open     bool    `json:"open"`
	OpenedAt *string `json:"opened_at"`
	ProbeAt  *string `json:"probe_at"`
	Probe    string  `json:"probe"`  // the model that tries it
	Recent   string  `json:"recent"` // the last attempts, oldest first: 1 has failed, 0 was answered
	Opened   int64   `json:"opened"` // how often
	By       string  `json:"by"`
	Reason   string  `json:"reason"`
	Parked   int64   `json:"parked"`
	*queueCircuitView
	*circuitParts
}

// circuitParts tells in how many parts of several a circuit is open.
type circuitParts struct {
	Parts     int `json:"parts"`
	OpenParts int `json:"open_parts"`
}

// state is whether it is open, in a word.
func (v *circuitView) state() string {
	switch {
	case v.Open:
		return "open"
	case v.queueCircuitView != nil && !v.On:
		return "off"
	default:
		return "closed"
	}
}

// lastAttempts draws what the last attempts have come to, oldest first.
func (v *circuitView) lastAttempts() string {
	return strings.NewReplacer("0", "+", "1", "-").Replace(v.Recent)
}

// readCircuits reads the circuits of these keys from all parts, or those of all keys.
func readCircuits(ctx context.Context, queue *store.Queue, keys ...string) ([]*circuitView, error) {
	circuits, err := queue.Fleet().Circuits(ctx, keys...)
	if err != nil {
		return nil, err
	}
	views := make([]*circuitView, len(circuits))
	for i, c := range circuits {
		v := &circuitView{Key: c.Key, Open: c.Open(), Recent: c.Recent, Opened: c.Opened, Parked: c.Parked}
		if c.Open() {
			v.OpenedAt, v.ProbeAt, v.Probe, v.By, v.Reason = optional(c.OpenedAt), optional(c.ProbeAt), c.Probe, c.By, c.Reason
		}
		if len(queue.Parts) > 1 {
			v.circuitParts = &circuitParts{len(queue.Parts), c.OpenParts}
		}
		if c.Key == model.QueueCircuitKey {
			v.queueCircuitView, err = readQueueCircuit(ctx, queue)
		}
		views[i] = v
	}
	return views, err
}

func (a *app) listCircuits(ctx context.Context, queue *store.Queue, _ []string) error {
	views, err := readCircuits(ctx, queue)
	if err != nil {
		return err
	}
	if a.json() {
		return printJSONLines(a.stdout, views, func(v **circuitView) any { return *v })
	}
	t := a.newTable("KEY", "STATE", "SINCE", "NEXT PROBE", "PROBED BY", "PARKED", "LAST ATTEMPTS", "BY", "REASON")
	for _, v := range views {
		t.row(v.Key, v.state(), instant(v.OpenedAt), instant(v.ProbeAt), v.Probe, fmt.Sprint(v.Parked), v.lastAttempts(), v.By, v.Reason)
	}
	return t.Flush()
}

func (a *app) showCircuit(ctx context.Context, queue *store.Queue, keys []string) error {
	views, err := readCircuits(ctx, queue, keys[0])
	if err != nil {
		return err
	}
	v := views[0]
	state, parts, parked := v.state(), "", ""
	if v.Open {
		state += " since " + *v.OpenedAt
	}
	if v.circuitParts != nil {
		parts = fmt.Sprintf("%d, %d of them open", v.Parts, v.OpenParts)
	}
	if v.Parked > 0 {
		parked = fmt.Sprint(v.Parked)
	}
	pairs := [][2]string{
		{"circuit", v.Key}, {"state", state}, {"parts", parts}, {"by", v.By}, {"reason", v.Reason}, {"next probe", instant(v.ProbeAt)}, {"probed by", v.Probe},
		{"parked", parked}, {"last attempts", v.lastAttempts()}, {"times opened", fmt.Sprint(v.Opened)},
	}
	return a.print(v, append(pairs, v.pairs()...))
}
