package store

import (
	"context"
	"slices"

	"github.com/refreshd/refreshd/model"
)

// EachPicked hands over the models that a selector picks, in no order, each once; it walks the narrowest index that there is. What is put or removed meanwhile may be missed. It ends
// early with the error of visit.
func (s Report) EachPicked(ctx context.Context, selector model.Selector, visit func(*Record) error) error {
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
	picks := func(r *Record) bool {
		_, waits := queued[r.AttemptUID]
		return selector.Matches(&r.Model, r.Status(now, waits), now)
	}
	seen := newSeen()
	for place := WalkBegins; place != WalkEnds; {
		var uids []string
		if uids, place, err = s.WalkModels(ctx, selector, place, ScanCount); err != nil {
			return err
		}
		for chunk := range slices.Chunk(seen.fresh(uids, ""), ScanCount) {
			if err := s.eachPicked(ctx, chunk, picks, visit); err != nil {
				return err
			}
		}
	}
	return nil
}

// eachPicked hands over those of the models with these uids that are wanted.
func (s Report) eachPicked(ctx context.Context, uids []string, picks func(*Record) bool, visit func(*Record) error) error {
	records, err := s.Load(ctx, uids)
	if err != nil {
		return err
	}
	for _, uid := range uids {
		if r := records[uid]; r.Exists && picks(r) {
			if err := visit(r); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}
