package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/chart"
	"github.com/refreshd/refreshd/internal/simulate"
	"github.com/refreshd/refreshd/model"
)

func simulateCommand(a *app) *cobra.Command {
	var s simulation
	command := draws(&cobra.Command{
		Use: "simulate --policy FILE|-|NAME", Short: "Show what a policy would do, on a virtual clock", Args: cobra.NoArgs,
		Long: `Show what a policy would do: the decisions of the daemons, on a clock that jumps. It begins with a start by hand.

` + policySourceText + ` A document with uid, payload or policy is a model;
one that names no policy gets the built-in one.

How the attempts end:
  --outcomes FILE   one a line: "success 2m", "failure 3m", "failure 3m NetworkError" or "lost" (no answer, the deadline passes);
                    what follows a # counts for nothing. The run ends with the last of them.
  --seed, --fail, --lost, --duration
                    by chance, the same with each seed.
  neither           every attempt fails after 1 minute, 50 of them: what if it fails for ever?

Workers begin at once, and the input list counts as empty. --against runs another policy through the same.`,
		RunE: func(command *cobra.Command, _ []string) error { return a.simulate(command.Context(), s) },
	})
	flags := command.Flags()
	flags.StringVar(&s.policy, "policy", "", "`FILE`, - or name of the policy or model")
	flags.StringVar(&s.against, "against", "", "`FILE`, - or name of another one, to compare")
	flags.StringVar(&s.start, "start", "", "`TIME` of the start by hand, in the zone of the policy unless it says (default now)")
	flags.StringVar(&s.until, "until", "", "`TIME`, or duration from --start, after which no attempt starts")
	flags.IntVar(&s.days, "days", 0, "`N` days from --start, in place of --until (default 30 by chance, else no end)")
	flags.IntVar(&s.limit, "limit", 0, "at most `N` attempts (default 1000, or 50 if every attempt fails)")
	flags.StringVar(&s.outcomes, "outcomes", "", "`FILE`, or -, with the outcomes of the attempts")
	flags.StringVar(&s.seed, "seed", "", "`N` that chance and jitter follow from (default 1)")
	flags.StringVar(&s.fail, "fail", "", "`PERCENT` of the attempts that fail (default 5% by chance)")
	flags.StringVar(&s.lost, "lost", "", "`PERCENT` of the attempts that are lost (default 1% by chance)")
	flags.StringVar(&s.duration, "duration", "", "`LENGTH`, or range of lengths, of an attempt (default 1m-5m by chance)")
	return command
}

// simulation is what the flags say. Empty and 0: not given.
type simulation struct {
	policy, against            string
	start, until               string
	days, limit                int
	outcomes                   string
	seed, fail, lost, duration string
}

// byChance reports whether a flag asks for outcomes by chance.
func (s *simulation) byChance() bool { return s.seed+s.fail+s.lost+s.duration != "" }

func (a *app) simulate(ctx context.Context, s simulation) error {
	if err := s.check(); err != nil {
		return err
	}
	fate, err := a.fate(&s)
	if err != nil {
		return err
	}
	subjects, err := a.readSubjects(ctx, &s)
	if err != nil {
		return err
	}
	zone := subjects[0].zone()
	plan, err := s.plan(zone, time.Now())
	if err != nil {
		return err
	}
	charts := make([]chart.Chart, len(subjects))
	for i, subject := range subjects {
		m, err := subject.model(plan.Start)
		if err != nil {
			return err
		}
		run := simulate.Simulate(*m, fate(), plan)
		if run.End == simulate.EndLimit {
			a.complain(fmt.Sprintf("%s: stopped after %d attempts; --limit allows more", plain(subject.name), plan.Limit))
		}
		charts[i] = run.Chart(plan, subject.name, zone)
	}
	return a.draw(charts...)
}

// fate makes the outcomes of one run, the same ones for each.
func (a *app) fate(s *simulation) (func() simulate.Outcomes, error) {
	switch {
	case s.outcomes != "":
		list, err := a.readOutcomes(s.outcomes)
		return func() simulate.Outcomes { return simulate.Listed(list) }, err
	case s.byChance():
		chance, err := s.chance()
		return chance.Outcomes, err
	default:
		return func() simulate.Outcomes {
			return simulate.Always(simulate.Outcome{Result: simulate.Failure, After: time.Minute})
		}, nil
	}
}

func (a *app) readOutcomes(path string) ([]simulate.Outcome, error) {
	name, in, err := a.openInput(path)
	if err != nil {
		return nil, err
	}
	defer in.Close() //nolint:errcheck // nothing was written to it
	list, err := simulate.ReadOutcomes(in)
	if err != nil {
		return nil, fmt.Errorf("%s %w", name, err)
	}
	return list, nil
}

// unnamed is the uid of a simulated model that has none.
const unnamed = "simulated"

// zoneOf is the zone of the schedule in force, UTC if it names none.
func zoneOf(m *model.Model) *time.Location {
	zone, err := time.LoadLocation(m.Zone())
	if err != nil { // a model with a fault; its schedule is not in force either
		return time.UTC
	}
	return zone
}
