package operate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/refreshd/refreshd/internal/preview/forecast"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// LevelRequest says what is levelled, and whether that is stored.
type LevelRequest struct {
	InputRequest

	Within             string // by less than which planned refreshes are shifted
	Plan, Apply, Clear bool   // at most one

	shift time.Duration
}

// Level is a fleet that was levelled.
type Level struct {
	Queue  string        `json:"queue"`
	Within time.Duration `json:"within"`
	Models int           `json:"models"` // that may be moved
	Moves  int           `json:"moves"`  // those that get another phase under the plan
	Before *Load         `json:"before"` // nil if phases are cleared, like After
	After  *Load         `json:"after"`
	// Changed and Left are what became of it; 0 if it was only planned. Those that are left wait for something else than a planned refresh.
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

// Level chooses phases for models by which they start as evenly as can be, and stores them if that is asked for.
func (o Operator) Level(ctx context.Context, r LevelRequest) (Level, error) {
	if err := r.Validate(); err != nil {
		return Level{}, err
	}
	fleet, err := o.openInput(ctx, &r.InputRequest)
	if err == nil && (r.Apply || r.Clear) {
		err = o.Queue.RequireWhole()
	}
	if err != nil {
		return Level{}, err
	}
	found := Level{Queue: o.Queue.Name, Within: r.shift, Drain: fleet.drained()}
	phase := func(*model.Model) time.Duration { return 0 }
	if !r.Clear {
		leveller := forecast.NewLeveller(fleet.now, fleet.to, r.shift)
		err := fleet.eachModel(ctx, readWhole, func(_ *store.Store, records []*store.Record) error {
			for _, record := range records {
				leveller.Add(&record.Model, fleet.picks(record), forecast.Host(&record.Model))
			}
			return nil
		})
		if err != nil {
			return Level{}, err
		}
		plan := leveller.Plan()
		found.Models, found.Moves, found.Before, found.After = plan.Models, plan.Moved, new(fleet.load(plan.Before)), new(fleet.load(plan.After))
		found.Minutes = len(plan.Before.PerMinute)
		phase = func(m *model.Model) time.Duration { return plan.Phase(m, forecast.Host(m)) }
	}
	if !r.Apply && !r.Clear {
		return found, nil
	}
	err = o.Queue.Each(func(part *store.Store) error { // and of what waits for nothing: it is put again some time
		return part.Report().Walk(ctx, r.picks, func(uids []string) error { return found.apply(ctx, part, fleet, uids, phase) })
	})
	return found, redis.Wrap(err, fmt.Sprintf("after %d models", found.Changed))
}

var errBusy = errors.New("the model waits for something else than a planned refresh")

func (l *Level) apply(ctx context.Context, part *store.Store, fleet *fleet, uids []string, phase func(*model.Model) time.Duration) error {
	changes := make([]bool, len(uids))
	commands := redis.Map(uids, func(uid string) *model.Command { return &model.Command{UID: uid} })
	refused, err := store.Execute(ctx, part, commands, func(i int, snapshot *store.Snapshot, now time.Time) (*store.Transition, error) {
		changes[i] = false
		record := snapshot.Records[uids[i]]
		if !record.Exists || record.Broken || !fleet.picks(record) {
			return nil, nil
		}
		decision, outcome := record.Level(phase(&record.Model), now)
		switch outcome {
		case model.Applied:
			changes[i], decision.By = true, fleet.By
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
