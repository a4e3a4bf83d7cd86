package operate

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// Suspect is a model whose last success waits for a verdict.
type Suspect struct {
	UID        string             `json:"uid"`
	Since      time.Time          `json:"since"`
	AttemptUID string             `json:"attempt_uid"`
	Reason     string             `json:"reason"` // why the success is doubted; empty: no history is kept
	Metrics    map[string]float64 `json:"metrics"`
	Labels     map[string]string  `json:"labels"`
}

// maxSuspects bounds the list of a part: nobody looks at more one by one.
const maxSuspects = 10_000

// Suspects lists the held models that a selector picks, longest held first.
func Suspects(ctx context.Context, o Operator, selector string) (found []Suspect, err error) {
	picks, err := model.ParseSelector(selector)
	if err != nil {
		return nil, refused(err)
	}
	err = o.Queue.Each(func(part *store.Store) error {
		waiting, err := flow.Of(part).ParkedBy(ctx, []model.Blocker{model.BySuspect}, func(model.Blocker) int { return maxSuspects })
		if err != nil {
			return err
		}
		for uids := range slices.Chunk(waiting[0], BatchSize) {
			records, err := part.Load(ctx, uids)
			if err != nil {
				return err
			}
			pasts, err := part.Report().Histories(ctx, uids, 1)
			if err != nil {
				return err
			}
			for _, uid := range uids {
				if r := records[uid]; r.Held() && picks.Matches(&r.Model, model.StatusParked) {
					found = append(found, newSuspect(r, pasts[uid]))
				}
			}
		}
		return nil
	})
	slices.SortFunc(found, func(a, b Suspect) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.UID, b.UID)) })
	return found, err
}

func newSuspect(r *store.Record, past []model.Attempt) Suspect {
	s := Suspect{UID: r.UID, Since: r.ParkedSince, AttemptUID: r.LastAttemptUID, Labels: r.Labels}
	if len(past) > 0 && past[0].AttemptUID == r.LastAttemptUID {
		s.Reason, s.Metrics = past[0].Suspect, past[0].Metrics
	}
	return s
}
