package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/refreshd/refreshd/cmd/refreshd/internal/print"
	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
	"github.com/refreshd/refreshd/model/words"
)

func bindEnding(flags *pflag.FlagSet, e *operate.Ending) {
	flags.StringVar(&e.Until, "until", "", "ends at `TIME`, as in 2026-11-24T06:00:00Z")
	flags.StringVar(&e.For, "for", "", "ends after `DURATION`, such as 2h")
}

func holdCommand(a *app) *cobra.Command {
	var r operate.HoldRequest
	var models expectation
	command := a.operates("hold", "Keep models from starting, for a while or until they are released", oneOfCommands("ls"),
		func(ctx context.Context, o operate.Operator, _ []string) error {
			if err := models.of(ctx, o, r.Selector); err != nil {
				return err
			}
			hold, bulk, err := o.Hold(ctx, r)
			if err == nil && bulk != "" {
				err = a.follow(ctx, o, bulk)
			}
			err = table(a, holdHeader, holdRow)([]flow.HoldStatus{hold}, err)
			return a.warnOfNoMatch(ctx, o, r.Selector, bulk == "", err)
		})
	command.Long = `No model that the selector picks starts from now on; without -l that is the whole queue. What is due waits, and starts once when the hold ends.
What it waits counts neither as an attempt nor towards giving up. Attempts that run are finished, or with --cancel taken back, uncounted.
refreshd hold ls shows the holds, refreshd release ends one.`
	flags := command.Flags()
	flags.StringVarP(&r.Selector, "selector", "l", "", "models that `SELECTOR` picks, such as tenant=t1 (default all)")
	models.bind(flags)
	flags.StringVar(&r.Reason, "reason", "", "`TEXT` for people: why (required)")
	flags.StringVar(&r.ID, "id", "", "`NAME` of the hold; the same again changes it (default a new one)")
	flags.StringVar(&r.Within, "within", "", "spread the starts at its end over `DURATION` (default all at once)")
	flags.BoolVar(&r.Cancel, "cancel", false, "take back the attempts that are queued or running, uncounted")
	bindEnding(flags, &r.Ending)
	a.bindBy(flags)
	command.AddCommand(lists(a, "List the holds", operate.Operator.Holds, holdHeader, holdRow))
	return command
}

func releaseCommand(a *app) *cobra.Command {
	var r operate.ReleaseRequest
	short := "End a hold, without ID that of the whole queue or the only one: what waits for it starts once"
	command := a.operates("release [ID]", short, func(command *cobra.Command, ids []string) error {
		r.ID, r.Only = append(ids, "")[0], len(ids) == 0
		return cmp.Or(cobra.MaximumNArgs(1)(command, ids), r.Validate())
	}, func(ctx context.Context, o operate.Operator, _ []string) error {
		hold, err := o.Release(ctx, r)
		if err != nil {
			return err
		}
		return a.print(map[string]any{"id": hold.ID, "released": true, "parked": hold.Parked}, [][2]any{
			{"released", hold.ID},
			{"parked", words.Count(int(hold.Parked), "model starts", "models start") + " within " + document.FormatDuration(max(hold.Within, time.Second))},
		})
	})
	command.Flags().StringVar(&r.Within, "within", "", "spread the starts over `DURATION` (default as the hold says)")
	return command
}

var holdHeader = []any{"HOLD", "MODELS", "SINCE", "UNTIL", "PARKED", "BY", "REASON"}

func holdRow(h *flow.HoldStatus) []any {
	var until any = h.Until
	switch {
	case h.Released:
		until = "letting go"
	case h.Until.IsZero():
		until = "until released"
	}
	return []any{h.ID, cmp.Or(h.Selector.String(), "all"), h.Since, until, h.Parked, h.By, h.Reason}
}

func calendarCommand(a *app) *cobra.Command {
	command := group("calendar", "Keep models from starting by schedule: holidays, nightly maintenance",
		a.operates("put FILE ...", "Store the calendars of YAML or JSON files (- is standard input)", cobra.MinimumNArgs(1),
			func(ctx context.Context, o operate.Operator, files []string) error {
				var calendars []schedule.Calendar
				for _, file := range files {
					name, in, err := a.openInput(file)
					if err != nil {
						return err
					}
					read, err := definitions.ReadCalendars(name, in)
					if err := cmp.Or(err, in.Close()); err != nil {
						return err
					}
					calendars = append(calendars, read...)
				}
				return a.printCalendars(o.PutCalendars(ctx, calendars))
			}),
		a.operates("ls", "List the calendars, and when each is closed next", cobra.NoArgs, func(ctx context.Context, o operate.Operator, _ []string) error {
			return a.printCalendars(o.Calendars(ctx))
		}),
		a.operates("rm NAME", "Forget a calendar", cobra.ExactArgs(1), toNamed(operate.Operator.RemoveCalendar)))
	command.Long = `A calendar is closed from each occurrence of a rule on, for a while: {name: nightly, rrule: "FREQ=DAILY;BYHOUR=2", timezone: Europe/Berlin, for: 2h}. Models of
a policy that names it (closed: [nightly]) do not start then. What is due waits, and starts once when it opens; what it waits counts for nothing.`
	return command
}

func (a *app) printCalendars(calendars []operate.Calendar, err error) error {
	if err != nil || a.json() || len(calendars) == 0 {
		return table[operate.Calendar](a, nil, nil)(calendars, err)
	}
	for _, c := range calendars {
		text := "never closed"
		switch {
		case c.Problem != "":
			text = c.Problem
		case c.Closed:
			text = "closed until " + print.Time(c.Until)
		case !c.From.IsZero():
			text = "closed from " + print.Time(c.From) + " until " + print.Time(c.Until)
		}
		if _, err := fmt.Fprintln(a.stdout, plain(fmt.Sprintf("%s: %s (%s for %s)", c.Name, text, c.Rule, document.FormatDuration(c.For)))); err != nil {
			return err
		}
	}
	return nil
}

func circuitCommand(a *app) *cobra.Command {
	var probe, reason string
	var s operate.CircuitSettings
	show := func(ctx context.Context, o operate.Operator, keys []string) error {
		circuits, err := o.Circuits(ctx, keys[0])
		if err != nil {
			return err
		}
		return inPairs(a, circuitPairs)(circuits[0], nil)
	}
	opening := a.operates("open KEY", "Open a circuit by hand, until a probe is answered", cobra.ExactArgs(1),
		func(ctx context.Context, o operate.Operator, keys []string) error {
			if _, err := o.OpenCircuit(ctx, keys[0], probe, reason); err != nil {
				return err
			}
			ofKey := keys[0] != model.QueueCircuitKey
			return a.warnOfNoMatch(ctx, o, model.SelectCircuit+"="+keys[0], ofKey, show(ctx, o, keys))
		})
	opening.Long = `Open a circuit by hand. After --probe one of its models may try it, and an answer closes it. That of the queue closes then if attempts have succeeded
since it was opened; while it is off, it is closed by hand only. To open an open one sets when it is tried.`
	opening.Flags().StringVar(&probe, "probe", "", "`DURATION` until it may be tried (default "+document.FormatDuration(policy.DefaultProbe)+"; of queue its window)")
	opening.Flags().StringVar(&reason, "reason", "", "`TEXT` for people: why")
	closing := a.operates("close KEY", "Close a circuit by hand: its models start again", cobra.ExactArgs(1), toNamed(operate.Operator.CloseCircuit))
	setting := a.operates("set queue", "Set when the circuit of the queue opens, and switch it on or off", cobra.ExactArgs(1),
		func(ctx context.Context, o operate.Operator, keys []string) error {
			if err := o.SetCircuit(ctx, keys[0], s); err != nil {
				return err
			}
			return show(ctx, o, keys)
		})
	flags := setting.Flags()
	flags.BoolVar(&s.On, "on", false, "let it open and close by itself")
	flags.BoolVar(&s.Off, "off", false, "switch it off; if it is open, it closes")
	setting.MarkFlagsMutuallyExclusive("on", "off")
	flags.StringVar(&s.Share, "share", "", "`SHARE` of failed attempts that opens it (default 50%)")
	flags.StringVar(&s.Window, "window", "", "`DURATION` over which attempts are counted (default 5m)")
	flags.IntVar(&s.Min, "min", 0, "attempts within the window below which it does not open (default 20)")
	for _, changing := range []*cobra.Command{opening, closing, setting} {
		a.bindBy(changing.Flags())
	}
	command := group("circuit", "Stop the models of a key that fails, until a probe is answered",
		lists(a, "List the circuits that have counted anything within a week, open ones first", everything(operate.Operator.Circuits),
			[]any{"KEY", "STATE", "SINCE", "NEXT PROBE", "PROBED BY", "PARKED", "LAST ATTEMPTS", "BY", "REASON"}, func(c *operate.Circuit) []any {
				return []any{c.Key, c.State(), c.OpenedAt, c.ProbeAt, c.Probe, c.Parked, drawAttempts(c), c.By, c.Reason}
			}),
		a.operates("show KEY", "Show a circuit and what it has counted", cobra.ExactArgs(1), show), opening, closing, setting)
	command.Long = `A policy opens the circuit of a key when too many of its last attempts fail: circuit: {key: "{host(input_url)}", open_after: 5 of 10, on: [network,
http_5xx, timeout], probe: 5m}. Its models wait then, and nothing is counted, until one ordinary attempt, the probe, is answered.

The circuit of the whole queue has the key queue. It is off until refreshd circuit set queue --on. When more than a share of the attempts of the
queue fail within a window, the outage is taken to be on our side, and it opens: no model is disabled and retries become rarer, but nothing waits for
it. It closes when attempts succeed again. Each part of a queue measures for itself; they have one setting.`
	return command
}

func drawAttempts(c *operate.Circuit) string {
	return strings.NewReplacer("0", "+", "1", "-").Replace(c.Recent)
}

func circuitPairs(c *operate.Circuit) [][2]any {
	state, parts := c.State(), ""
	if c.Open {
		state += " since " + print.Time(c.OpenedAt)
	}
	if c.OpenParts != nil {
		parts = fmt.Sprintf("%d, %d of them open", c.Parts, c.OpenParts.OpenParts)
	}
	pairs := [][2]any{
		{"circuit", c.Key}, {"state", state}, {"parts", parts}, {"by", c.By}, {"reason", c.Reason}, {"next probe", c.ProbeAt}, {"probed by", c.Probe},
		{"parked", mark(c.Parked > 0, fmt.Sprint(c.Parked))}, {"last attempts", drawAttempts(c)}, {"times opened", c.Opened},
	}
	if c.QueueCircuit != nil {
		opens := fmt.Sprintf("when %.0f%% of at least %d attempts within %s fail", c.Share*100, c.Min, document.FormatDuration(c.Window))
		pairs = append(pairs, [][2]any{
			{"opens", mark(!c.On, "by hand only; switched on, ") + opens},
			{"counted", fmt.Sprintf("%d successes, %d failures within about a window", c.Successes, c.Failures)},
			{"while open", "final failures are held back, and retries are rarer"},
		}...)
	}
	return pairs
}

func limitCommand(a *app) *cobra.Command {
	var r operate.LimitRequest
	running := 0
	setting := a.operates("set KEY", "Set a limit for a key, or for all keys of a template", cobra.ExactArgs(1),
		func(ctx context.Context, o operate.Operator, keys []string) error {
			r.Key, r.Running = keys[0], strconv.Itoa(running)
			if err := o.SetLimit(ctx, r); err != nil {
				return err
			}
			counted := model.SelectKey + "=" + keys[0]
			err := table(a, limitHeader, limitRow)(o.Limits(ctx, keys[0]))
			_, unfit := model.ParseSelector(counted) // a template is no key
			return a.warnOfNoMatch(ctx, o, counted, unfit == nil, err)
		})
	flags := setting.Flags()
	flags.Var(count[int]{&running, "1 to 100000"}, "running", "attempts at a time (default any number)")
	flags.StringVar(&r.Rate, "rate", "", "`RATE` of starts, such as 60/m (default any)")
	flags.StringVar(&r.Reason, "reason", "", "`TEXT` for people: why")
	bindEnding(flags, &r.Ending)
	a.bindBy(flags)
	command := group("limit", "Bound what runs of a key, such as four downloads a host", setting,
		a.operates("rm KEY", "Forget a limit that was set", cobra.ExactArgs(1), toNamed(operate.Operator.RemoveLimit)),
		a.operates("open KEY", "Open a key that an answer with a retry_after has closed", cobra.ExactArgs(1), toNamed(operate.Operator.OpenLimit)),
		lists(a, "List the limits that were set, and the keys of which something runs or waits", everything(operate.Operator.Limits), limitHeader, limitRow))
	command.Long = `A policy limits the keys of its models: limits: [{key: "{host(input_url)}", running: 4, rate: 60/m}]. A limit that is set here for one key, such as
host=example.com, goes before that until it ends; one for a template, such as '{host(input_url)}', bounds all models of the queue.
In a queue of several parts each part has its share, and at least one.`
	return command
}

var limitHeader = []any{"KEY", "RUNNING", "PARKED", "SET", "UNTIL", "BY", "REASON", "CLOSED UNTIL", "CLOSED BY"}

func limitRow(l *flow.LimitUse) []any {
	set := l.Rate.String()
	if l.Max > 0 {
		set = fmt.Sprintf("%d running %s", l.Max, set)
	}
	return []any{l.Key, l.Running, l.Parked, set, l.Until, l.By, l.Reason, l.ClosedUntil, l.ClosedBy}
}
