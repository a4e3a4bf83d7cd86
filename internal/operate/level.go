package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/refreshd/refreshd/internal/preview/forecast"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// LevelRequest asks for a plan of phases, or to store it.
type LevelRequest struct {
	InputRequest

	Within             string // by less than which planned refreshes are shifted
	Plan, Apply, Clear bool   // at most one

	shift time.Duration
}

// Level is the result of levelling.
type Level struct {
	Queue  string        `json:"queue"`
	Within time.Duration `json:"within"`
	Models int           `json:"models"` // that may be moved
	Moves  int           `json:"moves"`  // models that get another phase
	Before *Load         `json:"before"` // nil if phases are cleared, like After
	After  *Load         `json:"after"`
	// Changed and Left count the models whose phase was stored, and those that wait for something else than a planned refresh.
	Changed int `json:"changed"`
	Left    int `json:"left"`

	Drain   Drain `json:"-"`
	Minutes int   `json:"-"` // of the period
}

// Validate refuses what is wrong for any queue.
func (r *LevelRequest) Validate() (err error) {
	if r.Plan && r.Apply || r.Plan && r.Clear || r.Apply && r.Clear {
		return refuse("", "one of `plan`, `apply`, `clear`", "several")
	}
	if r.shift, err = readLength("within", r.Within, 2*time.Second, 24*time.Hour, "2s to 24h"); err != nil {
		return err
	}
	return r.validate()
}

// Level chooses phases so that models start as evenly as possible, and stores them if asked to.
func (o Operator) Level(ctx context.Context, r LevelRequest) (Level, error) {
	if err := r.Validate(); err != nil {
		return Level{}, err
	}
	input, err := o.openInput(ctx, &r.InputRequest)
	if err == nil && (r.Apply || r.Clear) {
		err = o.Queue.RequireWhole()
	}
	if err != nil {
		return Level{}, err
	}
	found := Level{Queue: o.Queue.Name, Within: r.shift, Drain: input.drained()}
	phase := func(*model.Model) time.Duration { return 0 }
	if !r.Clear {
		leveller := forecast.NewLeveller(input.now, input.to, r.shift)
		err := input.eachModel(ctx, readWhole, func(_ *store.Store, records []*store.Record) error {
			for _, record := range records {
				leveller.Add(&record.Model, input.picks(record))
			}
			return nil
		})
		if err != nil {
			return Level{}, err
		}
		plan := leveller.Plan()
		found.Models, found.Moves, found.Before, found.After = plan.Models, plan.Moved, new(input.load(plan.Before)), new(input.load(plan.After))
		found.Minutes = len(plan.Before.PerMinute)
		phase = plan.Phase
	}
	if !r.Apply && !r.Clear {
		return found, nil
	}
	deed := model.Deed{Verb: "level apply", What: cmp.Or(r.Selector, "all models"), After: "within " + r.Within}
	if r.Clear {
		deed.Verb, deed.After = "level clear", ""
	}
	err = o.Queue.AsOneDeed(ctx, deed, func(ctx context.Context, end *model.Deed) error {
		err := o.Queue.Each(func(part *store.Store) error { // also of idle models, which may be put again
			return part.Report().Walk(ctx, r.picks, func(uids []string) error { return found.apply(ctx, part, input, uids, phase) })
		})
		end.Number = found.Changed
		return err
	})
	return found, redis.Wrap(err, fmt.Sprintf("after %d models", found.Changed))
}

var errBusy = errors.New("the model waits for something else than a planned refresh")

func (l *Level) apply(ctx context.Context, part *store.Store, input *forecastInput, uids []string, phase func(*model.Model) time.Duration) error {
	changes := make([]bool, len(uids))
	commands := redis.Map(uids, func(uid string) *model.Command { return &model.Command{UID: uid} })
	refused, err := store.Execute(ctx, part, commands, func(i int, snapshot *store.Snapshot, now time.Time) (*store.Transition, error) {
		changes[i] = false
		record := snapshot.Records[uids[i]]
		if !record.Exists || record.Broken || !input.picks(record) {
			return nil, nil
		}
		decision, outcome := record.Level(phase(&record.Model), now)
		switch outcome {
		case model.Applied:
			changes[i], decision.By = true, input.By
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
			l.Left++
		case changes[i]:
			l.Changed++
		}
	}
	return err
}
