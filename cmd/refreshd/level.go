package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/foresight/forecast"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
)

func levelCommand(a *app) *cobra.Command {
	var f levelFlags
	command := &cobra.Command{
		Use: "level", Short: "Spread the planned starts of a fleet evenly, by a phase for each model", Args: cobra.NoArgs,
		Long: `Choose for each model by how much its planned refreshes are shifted, less than --within, so that all of them start as evenly as can
be: the emptiest minutes are filled first, and models of one host get phases far apart. What is not picked by -l keeps its times, and
the others go around it. A model has as many starts as before, none is moved to the next one or past it, and the peak never grows.

--plan (which is the default) only shows what it would bring. --apply stores the phases, and --clear takes them away. A model that
waits for anything else than a planned refresh is left as it is: to run the command again picks it up, and changes nothing of the
others. A phase stays when the model is saved, and takes the place of the spread of its policy.`,
		Example: `  refreshd level --within 10m --plan
  refreshd level --within 10m -l policy=hourly --apply
  refreshd level --clear -l tenant=t1`,
		RunE: func(command *cobra.Command, _ []string) error {
			return a.withStored(command.Context(), func(queue *store.Queue) error { return a.level(command.Context(), queue, f) })
		},
	}
	f.bind(command.Flags())
	command.Flags().StringVar(&f.within, "within", "10m", "`DURATION` by less than which planned refreshes are shifted, 2s to 24h")
	command.Flags().BoolVar(&f.plan, "plan", false, "only show what it would bring")
	command.Flags().BoolVar(&f.apply, "apply", false, "store the phases")
	command.Flags().BoolVar(&f.clear, "clear", false, "take the phases away")
	a.bindBy(command.Flags())
	return command
}

// levelFlags say what is levelled.
type levelFlags struct {
	fleetFlags

	within             string
	plan, apply, clear bool
}

// The bounds of --within.
const (
	leastWithin = 2 * time.Second
	mostWithin  = 24 * time.Hour
)

// levelView is a fleet that was levelled as -o json shows it.
type levelView struct {
	Queue  string    `json:"queue"`
	Within string    `json:"within"`
	Models int       `json:"models"` // that may be moved
	Moves  int       `json:"moves"`  // those that get another phase under the plan
	Before *loadView `json:"before"` // null with --clear, like after
	After  *loadView `json:"after"`
	// Changed and Left are what has become of it; 0 without --apply and --clear. Those that are left wait for something else than a planned refresh.
	Changed int `json:"changed"`
	Left    int `json:"left"`
}

func (a *app) level(ctx context.Context, queue *store.Queue, f levelFlags) error {
	if f.plan && f.apply || f.plan && f.clear || f.apply && f.clear {
		return usagef("expected one of --plan, --apply, --clear, found several")
	}
	within, err := document.ParseDuration(f.within)
	if err == nil && (within < leastWithin || within > mostWithin) {
		err = document.Refuse("", "2s to 24h", document.Found(f.within))
	}
	if err != nil {
		return usagef("--within: %w", err)
	}
	by, err := a.wantedBy()
	if err != nil {
		return err
	}
	fleet, err := openFleet(ctx, queue, f.fleetFlags)
	if err == nil && (f.apply || f.clear) {
		err = queue.RequireWhole()
	}
	if err != nil {
		return err
	}
	view, phase := levelView{Queue: queue.Name, Within: document.FormatDuration(within)}, func(*model.Model) time.Duration { return 0 }
	var plan *forecast.Plan
	if !f.clear {
		if plan, err = fleet.planLevel(ctx, within); err != nil {
			return err
		}
		view.Models, view.Moves, view.Before, view.After = plan.Models, plan.Moved, new(fleet.load(plan.Before)), new(fleet.load(plan.After))
		phase = func(m *model.Model) time.Duration { return plan.Phase(m, forecast.Host(m)) }
	}
	if f.apply || f.clear {
		leveller := leveller{fleet: fleet, phase: phase, by: by}
		if err := leveller.run(ctx); err != nil {
			return err
		}
		view.Changed, view.Left = leveller.changed, leveller.left
	}
	return a.print(view, fleet.levelPairs(view, plan, f))
}

func (s *fleet) planLevel(ctx context.Context, within time.Duration) (*forecast.Plan, error) {
	leveller := forecast.NewLeveller(s.now, s.to, within)
	err := s.each(ctx, func(_ *store.Store, records []*store.Record) error {
		for _, record := range records {
			leveller.Add(&record.Model, s.picks(record), forecast.Host(&record.Model))
		}
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	return leveller.Plan(), nil
}

// levelPairs is what has become of it, for people.
func (s *fleet) levelPairs(v levelView, plan *forecast.Plan, f levelFlags) [][2]any {
	pairs := [][2]any{}
	if plan != nil {
		pairs = append(pairs, [][2]any{
			{"models", fmt.Sprintf("%d may be moved, %d get another phase", v.Models, v.Moves)}, {"drain", s.drainText()},
			{"before", s.loadText(plan.Before)}, {"after", s.loadText(plan.After)},
		}...)
	}
	switch {
	case f.apply || f.clear:
		pairs = append(pairs, [2]any{"changed", words.Count(v.Changed, "model", "models")},
			[2]any{"left", mark(v.Left > 0, words.Count(v.Left, "model that waits", "models that wait")+" for something else than a planned refresh; run it again")})
	case v.Moves > 0:
		pairs = append(pairs, [2]any{"next", "--apply stores it"})
	default:
		pairs = append(pairs, [2]any{"next", "nothing: it would come no more evenly"})
	}
	return pairs
}

// leveller gives models their phases.
type leveller struct {
	*fleet

	phase         func(*model.Model) time.Duration
	by            string
	changed, left int
}

func (l *leveller) run(ctx context.Context) error {
	return l.each(ctx, func(part *store.Store, records []*store.Record) error {
		var picked []*model.Command
		for _, record := range records {
			if l.picks(record) {
				picked = append(picked, &model.Command{UID: record.UID})
			}
		}
		if err := l.apply(ctx, part, picked); err != nil {
			return l.queue.PartError(part, err)
		}
		return ctx.Err()
	})
}

var errBusy = errors.New("the model waits for something else than a planned refresh")

func (l *leveller) apply(ctx context.Context, part *store.Store, picked []*model.Command) error {
	changes := make([]bool, len(picked))
	refused, err := store.Execute(ctx, part, picked, func(i int, snapshot *store.Snapshot, now time.Time) (*store.Transition, error) {
		changes[i] = false
		record := snapshot.Records[picked[i].UID]
		if !record.Exists || record.Broken {
			return nil, nil
		}
		decision, outcome := record.Level(l.phase(&record.Model), now)
		switch outcome {
		case model.Applied:
			changes[i], decision.By = true, l.by
			return record.Decide(decision, now), nil
		case model.Busy:
			return nil, errBusy
		default:
			return nil, nil
		}
	})
	for i, reason := range refused {
		switch {
		case reason != nil:
			l.left++
		case changes[i]:
			l.changed++
		}
	}
	return err
}
