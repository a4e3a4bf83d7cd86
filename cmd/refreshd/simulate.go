package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/foresight/chart"
	"github.com/refreshd/refreshd/internal/foresight/explain"
	"github.com/refreshd/refreshd/internal/foresight/simulate"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

func simulateCommand(a *app) *cobra.Command {
	var s simulationFlags
	command := &cobra.Command{
		Use: "simulate --policy FILE|-|NAME", Short: "Show what a policy would do, on a virtual clock",
		Args: cobra.NoArgs, Annotations: drawsPictures,
		Long: `Show what a policy would do: the decisions of the daemons, on a clock that jumps. It begins with a start by hand.

` + policySourceText + ` A document with uid, payload or policy is a model;
one that names no policy gets the policy default. That is the stored one where --redis or REDIS_URL says which Redis, or else the
built-in one; it also completes policies that leave something out.

How the attempts end:
  --outcomes FILE   one a line: "success 2m", "failure 3m", "failure 3m NetworkError" or "lost" (no answer, the deadline passes);
                    what follows a # counts for nothing. The run ends with the last of them.
  --seed, --fail, --lost, --duration
                    by chance, the same with each seed.
  neither           every attempt fails after 1 minute, 50 of them: what if it fails for ever?

Workers begin at once, and the input list counts as empty. --against runs another policy through the same.`,
		RunE: func(command *cobra.Command, _ []string) error { return a.simulate(command.Context(), s) },
	}
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

// simulationFlags are the settings of a simulation. "" and 0: not given.
type simulationFlags struct {
	policy, against string // file, - or name of a stored policy
	start           string // time; default now
	until           string // time, or duration from start; default none
	days, limit     int    // days from start, in place of until; attempts
	outcomes        string // file or -
	// Of outcomes by chance. By default seed 1, 5 % fail, 1 % lost, 1 to 5 minutes.
	seed, fail, lost, duration string
}

func (s *simulationFlags) byChance() bool { return s.seed+s.fail+s.lost+s.duration != "" }

func (a *app) simulate(ctx context.Context, s simulationFlags) error {
	if err := s.check(); err != nil {
		return err
	}
	chance, err := s.chance()
	if err != nil {
		return err
	}
	outcomes, err := a.outcomes(&s, chance)
	if err != nil {
		return err
	}
	var runs []definitions.Subject
	for _, from := range []string{s.policy, s.against} {
		if from == "" {
			continue
		}
		run, err := a.readSimulated(ctx, from)
		if err != nil {
			return err
		}
		runs = append(runs, run)
	}
	if len(runs) == 2 && runs[0].Name == runs[1].Name {
		runs[0].Name, runs[1].Name = s.policy, s.against
	}
	// A wall clock time is read before the model is made.
	first := model.Model{Rule: runs[0].Definition.Rule, Timezone: runs[0].Definition.Timezone, Policy: runs[0].Policy}
	zone := explain.ZoneOf(&first)
	plan, err := s.plan(zone, time.Now(), chance.Seed)
	if err != nil {
		return err
	}
	charts := make([]chart.Chart, len(runs))
	for i, of := range runs {
		m, err := simulate.NewModel(of.Definition, of.Policy, plan.Start)
		if err != nil {
			return of.At(err)
		}
		run := simulate.Simulate(*m, outcomes(), plan)
		if run.End == simulate.EndLimit {
			a.complain(fmt.Sprintf("%s: stopped after %d attempts; --limit allows more", of.Name, plan.Limit))
		}
		charts[i] = run.Chart(plan, of.Name, zone)
	}
	return a.draw(charts...)
}

// Limits of the flags, and what they are when they are not given.
const (
	usualLimit   = 1000
	failingLimit = 50 // where all attempts fail: enough to see what it comes to
	maxAttempts  = 100_000
	maxDays      = 3660
	usualDays    = 30
)

func (s *simulationFlags) check() error {
	given := []string{s.policy, s.against, s.outcomes}
	inputs := len(slices.DeleteFunc(given, func(from string) bool { return from != "-" }))
	switch {
	case s.policy == "":
		return usagef("--policy: expected a file, - or the name of a stored policy, found nothing")
	case inputs > 1:
		return usagef("expected standard input (-) once, found it %d times", inputs)
	case s.outcomes != "" && s.byChance():
		return usagef("--outcomes: expected no --seed, --fail, --lost and --duration beside it")
	case s.until != "" && s.days != 0:
		return usagef("--until: expected no --days beside it")
	case s.days < 0 || s.days > maxDays:
		return usagef("--days: expected 1 to %d, found %d", maxDays, s.days)
	case s.limit < 0 || s.limit > maxAttempts:
		return usagef("--limit: expected 1 to %d, found %d", maxAttempts, s.limit)
	}
	return nil
}

// plan says where the run begins and ends.
func (s *simulationFlags) plan(zone *time.Location, now time.Time, seed uint64) (plan simulate.Plan, err error) {
	plan.Start, plan.Limit, plan.Seed = now.Truncate(time.Second), s.limit, seed
	if s.start != "" {
		if plan.Start, err = simulate.ParseTime(s.start, zone); err != nil {
			return plan, usagef("--start: %w", err)
		}
	}
	length, notLength := document.ParseDuration(s.until)
	switch {
	case s.days > 0:
		plan.Until = plan.Start.AddDate(0, 0, s.days)
	case s.until == "" && s.byChance():
		plan.Until = plan.Start.AddDate(0, 0, usualDays)
	case s.until == "":
	case notLength == nil:
		plan.Until = plan.Start.Add(length)
	default:
		if plan.Until, err = simulate.ParseTime(s.until, zone); err != nil {
			return plan, usagef("--until: %w", err)
		}
		if plan.Until.Before(plan.Start) {
			return plan, usagef("--until: expected a time after --start, found %s", document.Found(s.until))
		}
	}
	if plan.Limit == 0 {
		plan.Limit = usualLimit
		if s.outcomes == "" && !s.byChance() {
			plan.Limit = failingLimit
		}
	}
	return plan, nil
}

// outcomes makes the outcomes of one run, the same ones for each.
func (a *app) outcomes(s *simulationFlags, chance simulate.Chance) (func() simulate.Outcomes, error) {
	switch {
	case s.outcomes != "":
		name, in, err := a.openInput(s.outcomes)
		if err != nil {
			return nil, err
		}
		defer in.Close()
		list, err := simulate.ReadOutcomes(in)
		if err != nil {
			return nil, fmt.Errorf("%s %w", name, err)
		}
		return func() simulate.Outcomes { return simulate.Listed(list) }, nil
	case s.byChance():
		return chance.Outcomes, nil
	default:
		return func() simulate.Outcomes {
			return simulate.Always(simulate.Outcome{Result: simulate.Failure, After: time.Minute})
		}, nil
	}
}

// chance is what the flags say of outcomes by chance.
func (s *simulationFlags) chance() (c simulate.Chance, err error) {
	if c.Seed, err = strconv.ParseUint(cmp.Or(s.seed, "1"), 10, 64); err != nil {
		return c, usagef("--seed: expected a whole number, found %s", document.Found(s.seed))
	}
	if c.Fail, err = simulate.ParseShare(cmp.Or(s.fail, "5%")); err != nil {
		return c, usagef("--fail: %w", err)
	}
	if c.Lost, err = simulate.ParseShare(cmp.Or(s.lost, "1%")); err != nil {
		return c, usagef("--lost: %w", err)
	}
	switch { // what is not given gives way
	case s.lost == "":
		c.Lost = min(c.Lost, 1-c.Fail)
	case s.fail == "":
		c.Fail = min(c.Fail, 1-c.Lost)
	}
	if together := 100 * (c.Fail + c.Lost); together > 100+1e-9 { // percentages are rarely whole in binary
		return c, usagef("--fail, --lost: expected at most 100%% together, found %.4g%%", together)
	}
	if c.Shortest, c.Longest, err = simulate.ParseLengths(cmp.Or(s.duration, "1m-5m")); err != nil {
		err = usagef("--duration: %w", err)
	}
	return c, err
}

func (a *app) readSimulated(ctx context.Context, from string) (definitions.Subject, error) {
	name, docs, stored, err := a.readDocuments(ctx, from)
	if err != nil {
		return definitions.Subject{}, err
	}
	if len(docs) != 1 {
		return definitions.Subject{}, fmt.Errorf("%s: expected one policy or model, found %d", name, len(docs))
	}
	return definitions.ReadSubject(docs[0], from, stored, func() policy.Policy { return a.usualPolicy(ctx) },
		func(name string) (policy.Policy, error) { return a.readStoredPolicy(ctx, name) })
}
