package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
	"github.com/refreshd/refreshd/model/words"
)

// impact is what a policy would change for the models that use it. Those that wait for a planned refresh are planned anew, if it plans
// otherwise; for the others it takes effect at their next decision.
type impact struct {
	Models    int `json:"models"`      // use the policy
	Changed   int `json:"changed"`     // would decide otherwise than now: another planned refresh, deadline or retry
	DueAtOnce int `json:"due_at_once"` // are due now, so that they start under it at once
	Running   int `json:"running"`     // decide when their attempt ends
	Disabled  int `json:"disabled"`    // decide nothing until somebody enables or updates them
	Replanned int `json:"replanned"`   // would start at another time than they wait for, or wait for none any more
	// FirstStarts are when the first of these would start, different instants, earliest first.
	FirstStarts []string `json:"first_starts"`
}

// maxFirstStarts is how many starts a plan names.
const maxFirstStarts = 3

func (i impact) String() string {
	anew := "none is planned anew"
	if i.Replanned > 0 {
		anew = fmt.Sprintf("%d planned anew", i.Replanned)
	}
	if len(i.FirstStarts) > 0 {
		anew += ", the first at " + strings.Join(i.FirstStarts, ", ")
	}
	return fmt.Sprintf("%s it, %d would decide otherwise; %d due at once, %d running, %d disabled; %s; the others decide at their next refresh",
		words.Count(i.Models, "model uses", "models use"), i.Changed, i.DueAtOnce, i.Running, i.Disabled, anew)
}

// start notes when a model that is planned anew would start.
func (i *impact) start(at time.Time) {
	i.Replanned++
	text := model.FormatTime(at)
	place, known := slices.BinarySearch(i.FirstStarts, text)
	if at.IsZero() || known || place == maxFirstStarts {
		return
	}
	i.FirstStarts = slices.Insert(i.FirstStarts, place, text)
	i.FirstStarts = i.FirstStarts[:min(len(i.FirstStarts), maxFirstStarts)]
}

// measureImpact asks every model that uses the policy called name what it would do under another one.
func measureImpact(ctx context.Context, queue *store.Queue, name string, policy policy.Policy) (*impact, error) {
	total := &impact{FirstStarts: []string{}}
	now, err := queue.Parts[0].Now(ctx)
	if err != nil {
		return nil, err
	}
	var schedules schedule.Cache
	err = eachUser(ctx, queue, name, func(record *store.Record) {
		total.Models++
		switch {
		case record.Disabled:
			total.Disabled++
		case record.Running():
			total.Running++
		case record.Due(now):
			total.DueAtOnce++
		}
		before, alike := forecastOfRun(&record.Model, now), record.Policy.PlansAlike(policy)
		// What cannot be compiled for this model shows as a difference.
		if err := record.Resolve(policy, schedules.Get); err != nil || forecastOfRun(&record.Model, now) != before {
			total.Changed++
		}
		if alike {
			return
		}
		if decision, outcome := record.Replan(now); outcome == model.Applied {
			total.start(decision.Next.RefreshAt)
		}
	})
	return total, err
}

// forecastOfRun is what would come of a model that is run by hand now. So every model can be asked, whatever it does.
func forecastOfRun(m *model.Model, now time.Time) model.Forecast {
	asked := *m
	run, _ := asked.Run(true, now) // forced: it cannot be refused
	asked.State = run.Next
	return asked.Forecast(now)
}

// eachUser visits every model that uses the policy called name.
func eachUser(ctx context.Context, queue *store.Queue, name string, visit func(*store.Record)) error {
	return queue.Each(func(part *store.Store) error {
		return part.Report().EachPicked(ctx, model.Selector{}, func(record *store.Record) error {
			if record.Uses(name) {
				visit(record)
			}
			return nil
		})
	})
}
