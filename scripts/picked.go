package scripts

import (
	"context"

	"github.com/refreshd/refreshd/model"
)

// EachPicked hands over the models that a selector picks, in no order, each once. What is put or removed meanwhile may be missed. It ends
// early with the error of visit.
func (s *Store) EachPicked(ctx context.Context, selector model.Selector, visit func(*Record) error) error {
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	var queued map[string]string
	if selector.AsksQueued() {
		if queued, err = s.Queued(ctx); err != nil {
			return err
		}
	}
	return s.EachModel(ctx, "", func(uids []string) error {
		records, err := s.Load(ctx, uids)
		if err != nil {
			return err
		}
		for _, uid := range uids {
			r := records[uid]
			_, waits := queued[r.AttemptUID]
			if !r.Exists || !selector.Matches(&r.Model, r.Status(now, waits), now) {
				continue
			}
			if err := visit(r); err != nil {
				return err
			}
		}
		return ctx.Err()
	})
}
