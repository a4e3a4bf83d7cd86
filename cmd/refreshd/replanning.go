package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/words"
)

// replanView is how far the models of a changed policy are planned anew, as -o json shows it; of a queue of several parts, in all of them.
type replanView struct {
	Policy  string `json:"policy"`
	Since   string `json:"since"`   // when it was changed
	Seen    int64  `json:"seen"`    // models that were looked at
	Changed int64  `json:"changed"` // those of them that start at another time now

	at time.Time
}

func (v replanView) String() string {
	return fmt.Sprintf("%s: %s seen, %d changed, since %s", v.Policy, words.Count(int(v.Seen), "model", "models"), v.Changed, v.Since)
}

// readReplans adds up the parts of a queue, by the name of the policy.
func readReplans(ctx context.Context, queue *store.Queue) ([]replanView, error) {
	views := []replanView{}
	err := queue.Each(func(part *store.Store) error {
		bulks, err := part.Bulks(ctx)
		for i := range bulks {
			bulk := &bulks[i]
			policy := bulk.Policy()
			if policy == "" {
				continue
			}
			place, found := slices.BinarySearchFunc(views, policy, func(v replanView, name string) int { return cmp.Compare(v.Policy, name) })
			if !found {
				views = slices.Insert(views, place, replanView{Policy: policy, at: bulk.Since})
			}
			v := &views[place]
			v.Seen, v.Changed = v.Seen+bulk.Seen, v.Changed+bulk.Done
			if bulk.Since.Before(v.at) {
				v.at = bulk.Since
			}
			v.Since = model.FormatTime(v.at)
		}
		return err
	})
	return views, err
}
