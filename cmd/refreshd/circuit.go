package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/scripts"
)

func circuitCommand(a *app) *cobra.Command {
	command := group("circuit", "Stop the models of a key that fails, until a probe is answered",
		&cobra.Command{Use: "ls", Short: "List the circuits that have counted anything within a week, open ones first", Args: cobra.NoArgs, RunE: a.onQueue(a.listCircuits)},
		circuitOpenCommand(a),
		&cobra.Command{Use: "close KEY", Short: "Close a circuit by hand: its models start again", Args: cobra.ExactArgs(1), RunE: a.onQueue(a.closeCircuit)})
	command.Long = `A policy opens the circuit of a key when too many of its last attempts fail: circuit: {key: "{host(input_url)}", open_after: 5 of 10, on: [network,
http_5xx, timeout], probe: 5m}. Its models wait then, and nothing is counted, until one ordinary attempt, the probe, is answered.
The circuit of the whole queue is called queue: it holds back final failures and makes retries rarer, and is tuned with refreshd brake.`
	return command
}

func circuitOpenCommand(a *app) *cobra.Command {
	probe := ""
	command := &cobra.Command{
		Use: "open KEY", Short: "Open a circuit by hand, until a probe is answered", Args: cobra.ExactArgs(1),
		RunE: a.onQueue(func(ctx context.Context, queue *scripts.Queue, keys []string) error {
			after := policy.DefaultProbe
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
			if strings.HasPrefix(keys[0], "{") || !strings.Contains(keys[0], "=") {
				return usagef("expected a key such as host=example.com, found %q", keys[0])
			}
			if err := queue.OpenCircuit(ctx, keys[0], by, after); err != nil {
				return err
			}
			return a.listCircuits(ctx, queue, keys)
		}),
	}
	command.Flags().StringVar(&probe, "probe", "", "`DURATION` until one model may try it (default "+document.FormatDuration(policy.DefaultProbe)+")")
	a.bindBy(command.Flags())
	return command
}

func (a *app) closeCircuit(ctx context.Context, queue *scripts.Queue, keys []string) error {
	if keys[0] == queueCircuit {
		return queue.Each(func(part *scripts.Store) error { return part.ReleaseBrake(ctx) })
	}
	closed, err := queue.CloseCircuit(ctx, keys[0])
	if err == nil && !closed {
		err = fmt.Errorf("%s: expected the key of an open circuit, found none of that name", plain(keys[0]))
	}
	return err
}

// queueCircuit is the key of the whole queue.
const queueCircuit = "queue"

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
	Parked   int64   `json:"parked"`
}

func readCircuits(ctx context.Context, queue *scripts.Queue) ([]circuitView, error) {
	views := map[string]*circuitView{}
	err := queue.Each(func(part *scripts.Store) error {
		circuits, err := part.Circuits(ctx)
		for _, c := range circuits {
			v := views[c.Key]
			if v == nil {
				v = &circuitView{Key: c.Key}
				views[c.Key] = v
			}
			v.Opened, v.Parked, v.Recent = v.Opened+c.Opened, v.Parked+c.Parked, v.Recent+c.Recent
			if c.Open() && !v.Open {
				v.Open, v.OpenedAt, v.ProbeAt, v.Probe, v.By = true, optional(c.OpenedAt), optional(c.ProbeAt), c.Probe, c.By
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	all := make([]circuitView, 0, len(views)+1)
	for _, v := range views {
		all = append(all, *v)
	}
	brake, err := readBrake(ctx, queue)
	if brake.On {
		v := circuitView{Key: queueCircuit, Open: brake.Engaged, Opened: brake.Incidents}
		if brake.Engaged {
			v.OpenedAt = &brake.EngagedAt
		}
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b circuitView) int {
		return cmp.Or(cmp.Compare(b2i(b.Open), b2i(a.Open)), cmp.Compare(a.Key, b.Key))
	})
	return all, err
}

func (a *app) listCircuits(ctx context.Context, queue *scripts.Queue, only []string) error {
	views, err := readCircuits(ctx, queue)
	if err != nil {
		return err
	}
	views = slices.DeleteFunc(views, func(v circuitView) bool { return len(only) > 0 && !slices.Contains(only, v.Key) })
	if a.json() {
		for _, v := range views {
			if err := printJSONLine(a.stdout, v); err != nil {
				return err
			}
		}
		return nil
	}
	t := a.newTable("KEY", "STATE", "SINCE", "NEXT PROBE", "PROBED BY", "PARKED", "LAST ATTEMPTS", "BY")
	for _, v := range views {
		state, since, probe := "closed", "", ""
		if v.Open {
			state, since = "open", *v.OpenedAt
		}
		if v.ProbeAt != nil {
			probe = *v.ProbeAt
		}
		t.row(v.Key, state, since, probe, v.Probe, fmt.Sprint(v.Parked), strings.NewReplacer("0", "+", "1", "-").Replace(v.Recent), v.By)
	}
	return t.Flush()
}
