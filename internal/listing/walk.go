// Package listing walks over the models that a selector picks, page by page: no page looks at more than it takes to fill it.
package listing

import (
	"context"
	"hash/maphash"
	"slices"

	"github.com/refreshd/refreshd/internal/preview/explain"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// Which says which models are listed, in what order, and from where on.
type Which struct {
	Picks model.Selector
	Sort  string // one of the orders
	From  Page
}

// Listed is a model of a list, with the page that ends behind it.
type Listed struct {
	explain.Shown

	Page Page
}

// Visit gets the models of a step that are picked, in their order, and the page that ends behind the step. An error ends the walk.
type Visit func(found []Listed, behind Page) error

// placed is a model that a walk comes by, and the page that ends with it.
type placed struct {
	store.Scored
	part *store.Store
	page Page
}

// The first step reads few models: where most are picked, they fill a page.
const firstStep, stepSize = 50, 200

// Walk lists models, each step at most some hundreds.
func Walk(ctx context.Context, queue *store.Queue, which Which, visit Visit) error {
	if which.Sort != "" {
		return which.walkSorted(ctx, queue, visit)
	}
	return which.walk(ctx, queue, visit)
}

func (w Which) walk(ctx context.Context, queue *store.Queue, visit Visit) error {
	size, from, seed, listed := firstStep, w.From, maphash.MakeSeed(), map[uint64]bool{} // of hashes, as the uids of a million models would take 100 MB
	for i := from.Part; i < len(queue.Parts); i++ {
		part := queue.Parts[i]
		for place := from.Place; place != store.WalkEnds; {
			uids, to, err := part.WalkModels(ctx, w.Picks, place, stepSize)
			if err != nil {
				return queue.PartError(part, err)
			}
			slices.Sort(uids)
			var step []placed
			for _, uid := range uids {
				if hash := maphash.String(seed, uid); !listed[hash] && uid > from.UID { // SCAN may tell a key twice
					listed[hash] = true
					step = append(step, placed{store.Scored{UID: uid}, part, Page{Part: i, Place: place, UID: uid}})
				}
			}
			if len(step) == 0 && to != store.WalkEnds {
				if err := visit(nil, Page{Part: i, Place: to}); err != nil {
					return err
				}
			}
			for len(step) > 0 {
				chunk := step[:min(len(step), size)]
				if err := w.tell(ctx, queue, chunk, visit); err != nil {
					return err
				}
				step, size = step[len(chunk):], stepSize
			}
			place, from.UID = to, ""
		}
		from = Page{Place: store.WalkBegins}
	}
	return nil
}

func (w Which) walkSorted(ctx context.Context, queue *store.Queue, visit Visit) error {
	after := store.Scored{UID: w.From.UID, Score: w.From.Score}
	for size := firstStep; ; size = stepSize {
		next, err := w.behind(ctx, queue, after, size)
		if err != nil || len(next) == 0 {
			return err
		}
		if err := w.tell(ctx, queue, next, visit); err != nil {
			return err
		}
		after = next[len(next)-1].Scored
	}
}

// behind reads the models of all parts that come next.
func (w Which) behind(ctx context.Context, queue *store.Queue, after store.Scored, size int) (next []placed, err error) {
	for _, part := range queue.Parts {
		keys := []string{part.Keys.Due, part.Keys.Urgent}
		if w.Sort == SortFailing {
			keys = []string{part.Keys.Failing}
		}
		for _, key := range keys {
			found, err := part.Report().Behind(ctx, key, after, size)
			if err != nil {
				return nil, queue.PartError(part, err)
			}
			for _, one := range found {
				next = append(next, placed{one, part, Page{Sort: w.Sort, Score: one.Score, UID: one.UID}})
			}
		}
	}
	slices.SortFunc(next, func(a, b placed) int { return a.Compare(b.Scored) })
	return next[:min(len(next), size)], nil
}

// tell reads models and hands over those that are picked, in their order.
func (w Which) tell(ctx context.Context, queue *store.Queue, places []placed, visit Visit) error {
	byPart, byUID := map[*store.Store][]string{}, map[string]explain.Shown{}
	for _, place := range places {
		byPart[place.part] = append(byPart[place.part], place.UID)
	}
	for _, part := range queue.Parts { // in their order, the same each time
		if byPart[part] == nil {
			continue
		}
		found, err := explain.ReadModels(ctx, part, byPart[part])
		if err == nil {
			found = slices.DeleteFunc(found, func(s explain.Shown) bool { return !w.Picks.Matches(&s.Record.Model, s.Status) })
			err = explain.ReadReasons(ctx, part, found)
		}
		if err != nil {
			return queue.PartError(part, err)
		}
		for _, one := range found {
			byUID[one.Record.UID] = one
		}
	}
	var found []Listed
	for _, place := range places {
		if one, wanted := byUID[place.UID]; wanted {
			found = append(found, Listed{one, place.page})
		}
	}
	if err := visit(found, places[len(places)-1].page); err != nil {
		return err
	}
	return ctx.Err()
}
