package operate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/preview/chart"
	"github.com/refreshd/refreshd/internal/preview/explain"
	"github.com/refreshd/refreshd/internal/preview/simulate"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// SimulateRequest are the settings of a simulation. Empty and 0: not given.
type SimulateRequest struct {
	Policy, Against string // file, - or name of a stored policy
	Start           string // time; default now
	Until           string // time, or duration from start; default none
	Days, Limit     int    // days from start, in place of until; attempts
	Outcomes        string // file or -
	Metrics         string // file or - with a series that the guards judge, in place of a run
	// Of outcomes by chance. By default seed 1, 5 % fail, 1 % lost, 1 to 5 minutes.
	Seed, Fail, Lost, Duration string

	chance simulate.Chance
}

func (r *SimulateRequest) byChance() bool { return r.Seed+r.Fail+r.Lost+r.Duration != "" }

// The limits and defaults of a simulation.
const (
	usualLimit   = 1000
	failingLimit = 50 // if all attempts fail
	maxAttempts  = 100_000
	maxDays      = 3660
	usualDays    = 30
)

func (r *SimulateRequest) validate() (err error) {
	given := []string{r.Policy, r.Against, r.Outcomes, r.Metrics}
	inputs := len(slices.DeleteFunc(given, func(from string) bool { return from != "-" }))
	switch {
	case r.Policy == "":
		return refuse("policy", "a file, - or the name of a stored policy", "nothing")
	case inputs > 1:
		return refusef("expected standard input (-) once, found it %d times", inputs)
	case r.Outcomes != "" && r.byChance():
		return refuse("outcomes", "no `seed`, `fail`, `lost` and `duration` beside it", "some")
	case r.Metrics != "" && (r.Against+r.Outcomes+r.Start+r.Until != "" || r.byChance() || r.Days+r.Limit != 0):
		return refuse("metrics", "only `policy` beside it", "more")
	case r.Until != "" && r.Days != 0:
		return refuse("until", "no `days` beside it", "it")
	case r.Days < 0 || r.Days > maxDays:
		return refuse("days", fmt.Sprintf("1 to %d", maxDays), fmt.Sprint(r.Days))
	case r.Limit < 0 || r.Limit > maxAttempts:
		return refuse("limit", fmt.Sprintf("1 to %d", maxAttempts), fmt.Sprint(r.Limit))
	}
	c := &r.chance
	if c.Seed, err = strconv.ParseUint(cmp.Or(r.Seed, "1"), 10, 64); err != nil {
		return refuse("seed", "a whole number", document.Found(r.Seed))
	}
	if c.Fail, err = simulate.ParseShare(cmp.Or(r.Fail, "5%")); err != nil {
		return refusedAt("fail", err)
	}
	if c.Lost, err = simulate.ParseShare(cmp.Or(r.Lost, "1%")); err != nil {
		return refusedAt("lost", err)
	}
	switch { // a default makes room for a given share
	case r.Lost == "":
		c.Lost = min(c.Lost, 1-c.Fail)
	case r.Fail == "":
		c.Fail = min(c.Fail, 1-c.Lost)
	}
	if together := 100 * (c.Fail + c.Lost); together > 100+1e-9 { // percentages are rarely whole in binary
		return refuse("fail", "at most 100% together with `lost`", fmt.Sprintf("%.4g%%", together))
	}
	c.Shortest, c.Longest, err = simulate.ParseLengths(cmp.Or(r.Duration, "1m-5m"))
	return refusedAt("duration", err)
}

// Simulate runs one or two policies or models on a virtual clock, by default from now on.
func (in Inputs) Simulate(ctx context.Context, r SimulateRequest, now time.Time) ([]chart.Chart, error) {
	if err := r.validate(); err != nil {
		return nil, err
	}
	outcomes, assumed, err := in.outcomes(&r)
	if err != nil {
		return nil, err
	}
	var subjects []definitions.Subject
	for _, from := range []string{r.Policy, r.Against} {
		if from == "" {
			continue
		}
		subject, err := in.subject(ctx, from)
		if err != nil {
			return nil, err
		}
		subjects = append(subjects, subject)
	}
	if len(subjects) == 2 && subjects[0].Name == subjects[1].Name {
		subjects[0].Name, subjects[1].Name = r.Policy, r.Against
	}
	// A wall clock time is read before the model is made.
	first := subjects[0]
	zone := explain.ZoneOf(&model.Model{Rule: first.Definition.Rule, Timezone: first.Definition.Timezone, Policy: first.Policy})
	plan, err := r.plan(zone, now)
	if err != nil {
		return nil, err
	}
	charts := make([]chart.Chart, len(subjects))
	for i, of := range subjects {
		m, err := simulate.NewModel(of.Definition, of.Policy, plan.Start)
		if err != nil {
			return nil, of.At(err)
		}
		run := simulate.Simulate(*m, outcomes, plan)
		if run.End == simulate.EndLimit {
			in.Note(fmt.Sprintf("%s: stopped after %d attempts; a higher limit allows more", of.Name, plan.Limit))
		}
		charts[i] = run.Chart(plan, of.Name, zone)
		charts[i].Assumed = assumed
	}
	return charts, nil
}

func (in Inputs) subject(ctx context.Context, from string) (subject definitions.Subject, err error) {
	name, docs, err := in.documents(ctx, from)
	if err == nil && len(docs) != 1 {
		err = fmt.Errorf("%s: expected one policy or model, found %d", name, len(docs))
	}
	if err != nil {
		return subject, err
	}
	return definitions.ReadSubject(docs[0], from, func() policy.Policy { return in.usual(ctx) },
		func(name string) (policy.Policy, error) { return in.storedPolicy(ctx, name) })
}

// Judge returns which refreshes of a recorded series the guards of a policy doubt.
func (in Inputs) Judge(ctx context.Context, r SimulateRequest) ([]simulate.Refresh, error) {
	if err := r.validate(); err != nil {
		return nil, err
	}
	subject, err := in.subject(ctx, r.Policy)
	if err != nil {
		return nil, err
	}
	if len(subject.Policy.Guard) == 0 {
		return nil, fmt.Errorf("%s: expected a policy with `guard`, found one that doubts nothing", subject.Name)
	}
	name, file, err := in.Open(r.Metrics)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read
	series, err := simulate.ReadSeries(file)
	if err != nil {
		return nil, fmt.Errorf("%s %w", name, err)
	}
	return simulate.Judge(subject.Policy.Guard, series), nil
}

func (r *SimulateRequest) plan(zone *time.Location, now time.Time) (plan simulate.Plan, err error) {
	plan.Start, plan.Limit, plan.Seed = now.Truncate(time.Second), r.Limit, r.chance.Seed
	if r.Start != "" {
		if plan.Start, err = simulate.ParseTime(r.Start, zone); err != nil {
			return plan, refusedAt("start", err)
		}
	}
	length, notLength := document.ParseDuration(r.Until)
	switch {
	case r.Days > 0:
		plan.Until = plan.Start.AddDate(0, 0, r.Days)
	case r.Until == "" && r.byChance():
		plan.Until = plan.Start.AddDate(0, 0, usualDays)
	case r.Until == "":
	case notLength == nil:
		plan.Until = plan.Start.Add(length)
	default:
		if plan.Until, err = simulate.ParseTime(r.Until, zone); err != nil {
			return plan, refusedAt("until", err)
		}
		if plan.Until.Before(plan.Start) {
			return plan, refuse("until", "a time after `start`", document.Found(r.Until))
		}
	}
	if plan.Limit == 0 {
		plan.Limit = usualLimit
		if r.Outcomes == "" && !r.byChance() {
			plan.Limit = failingLimit
		}
	}
	return plan, nil
}

// outcomes are those that are given, or else assumed.
func (in Inputs) outcomes(r *SimulateRequest) (outcomes simulate.Outcomes, assumed string, err error) {
	switch {
	case r.Outcomes != "":
		name, file, err := in.Open(r.Outcomes)
		if err != nil {
			return nil, "", err
		}
		defer func() { _ = file.Close() }() // only read
		list, err := simulate.ReadOutcomes(file)
		if err != nil {
			return nil, "", fmt.Errorf("%s %w", name, err)
		}
		return slices.Values(list), "", nil
	case r.byChance():
		c := &r.chance
		return c.Outcomes, fmt.Sprintf("Assumed: by chance (seed %d), %.4g%% of the attempts fail and %.4g%% are lost; an answer takes %s to %s.",
			c.Seed, 100*c.Fail, 100*c.Lost, document.FormatDuration(c.Shortest), document.FormatDuration(c.Longest)), nil
	default:
		return simulate.Always(simulate.Outcome{Result: simulate.Failure, After: time.Minute}), "Assumed: every attempt fails after a minute.", nil
	}
}
