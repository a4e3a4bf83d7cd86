package main

import (
	"context"
	"fmt"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
	"github.com/refreshd/refreshd/scripts"
)

// impact is what a policy would change for the models that use it. It takes effect at the next decision of each.
type impact struct {
	Models    int `json:"models"`      // use the policy
	Changed   int `json:"changed"`     // would decide otherwise than now: another planned refresh, deadline or retry
	DueAtOnce int `json:"due_at_once"` // are due now, so that they start under it at once
	Running   int `json:"running"`     // decide when their attempt ends
	Disabled  int `json:"disabled"`    // decide nothing until they are updated
}

func (i impact) String() string {
	return fmt.Sprintf("%d models use it, %d would decide otherwise; %d due at once, %d running, %d disabled; the others decide at their next refresh",
		i.Models, i.Changed, i.DueAtOnce, i.Running, i.Disabled)
}

// measureImpact asks every model that uses the policy called name what it would do under another one.
func measureImpact(ctx context.Context, queue *scripts.Queue, name string, policy policy.Policy) (*impact, error) {
	total := &impact{}
	now, err := queue.Parts[0].Now(ctx)
	if err != nil {
		return nil, err
	}
	var schedules schedule.Cache
	err = eachUser(ctx, queue, name, func(record *scripts.Record) {
		total.Models++
		switch {
		case record.Disabled:
			total.Disabled++
		case record.Running():
			total.Running++
		case record.Due(now):
			total.DueAtOnce++
		}
		before := forecastOfRun(&record.Model, now)
		// What cannot be compiled for this model shows as a difference.
		if err := record.Resolve(policy, schedules.Get); err != nil || forecastOfRun(&record.Model, now) != before {
			total.Changed++
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
func eachUser(ctx context.Context, queue *scripts.Queue, name string, visit func(*scripts.Record)) error {
	return queue.Each(func(part *scripts.Store) error {
		return part.EachModel(ctx, "", func(uids []string) error {
			records, err := part.Load(ctx, uids)
			if err != nil {
				return err
			}
			for _, record := range records {
				if record.Exists && (record.PolicyName == name || record.PolicyName == "" && name == scripts.DefaultPolicyName) {
					visit(record)
				}
			}
			return ctx.Err()
		})
	})
}
