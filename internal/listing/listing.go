// Package listing walks over the models that a selector picks, page by page. A page reads no more than it takes to fill it.
package listing

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"hash/maphash"
	"slices"

	"github.com/refreshd/refreshd/internal/preview/explain"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// Query selects and orders models, from a cursor on.
type Query struct {
	Picks model.Selector
	Sort  string // one of the orders
	From  Cursor
}

// Item is a model of a list, with the page that ends behind it.
type Item struct {
	explain.View

	Cursor Cursor
}

// Visit gets the models of a step that are picked, in their order, and the page that ends behind the step. An error ends the walk.
type Visit func(found []Item, behind Cursor) error

// position is a model in a walk, and the cursor behind it.
type position struct {
	store.Scored
	part *store.Store
	page Cursor
}

// The first step reads few models: often they fill a page.
const firstStep, stepSize = 50, 200

// Walk lists models, each step at most some hundreds.
func Walk(ctx context.Context, queue *store.Queue, which Query, visit Visit) error {
	if which.Sort != "" {
		return which.walkSorted(ctx, queue, visit)
	}
	return which.walk(ctx, queue, visit)
}

func (w Query) walk(ctx context.Context, queue *store.Queue, visit Visit) error {
	size, from, seed, listed := firstStep, w.From, maphash.MakeSeed(), map[uint64]bool{} // of hashes, as the uids of a million models would take 100 MB
	for i := from.Part; i < len(queue.Parts); i++ {
		part := queue.Parts[i]
		for place := from.Place; place != store.WalkEnds; {
			uids, to, err := part.WalkModels(ctx, w.Picks, place, stepSize)
			if err != nil {
				return queue.PartError(part, err)
			}
			slices.Sort(uids)
			var step []position
			for _, uid := range uids {
				if hash := maphash.String(seed, uid); !listed[hash] && uid > from.UID { // SCAN may return a key twice
					listed[hash] = true
					step = append(step, position{store.Scored{UID: uid}, part, Cursor{Part: i, Place: place, UID: uid}})
				}
			}
			if len(step) == 0 && to != store.WalkEnds {
				if err := visit(nil, Cursor{Part: i, Place: to}); err != nil {
					return err
				}
			}
			for len(step) > 0 {
				chunk := step[:min(len(step), size)]
				if err := w.pass(ctx, queue, chunk, visit); err != nil {
					return err
				}
				step, size = step[len(chunk):], stepSize
			}
			place, from.UID = to, ""
		}
		from = Cursor{Place: store.WalkBegins}
	}
	return nil
}

func (w Query) walkSorted(ctx context.Context, queue *store.Queue, visit Visit) error {
	after := store.Scored{UID: w.From.UID, Score: w.From.Score}
	for size := firstStep; ; size = stepSize {
		next, err := w.behind(ctx, queue, after, size)
		if err != nil || len(next) == 0 {
			return err
		}
		if err := w.pass(ctx, queue, next, visit); err != nil {
			return err
		}
		after = next[len(next)-1].Scored
	}
}

// behind reads the next models of all parts.
func (w Query) behind(ctx context.Context, queue *store.Queue, after store.Scored, size int) (next []position, err error) {
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
				next = append(next, position{one, part, Cursor{Sort: w.Sort, Score: one.Score, UID: one.UID}})
			}
		}
	}
	slices.SortFunc(next, func(a, b position) int { return a.Compare(b.Scored) })
	return next[:min(len(next), size)], nil
}

// pass reads models and passes on those that are picked, in their order.
func (w Query) pass(ctx context.Context, queue *store.Queue, places []position, visit Visit) error {
	byPart, byUID := map[*store.Store][]string{}, map[string]explain.View{}
	for _, place := range places {
		byPart[place.part] = append(byPart[place.part], place.UID)
	}
	for _, part := range queue.Parts { // in their order, the same each time
		if byPart[part] == nil {
			continue
		}
		found, err := explain.ReadModels(ctx, part, byPart[part])
		if err == nil {
			found = slices.DeleteFunc(found, func(s explain.View) bool { return !w.Picks.Matches(&s.Record.Model, s.Status) })
			err = explain.ReadReasons(ctx, part, found)
		}
		if err != nil {
			return queue.PartError(part, err)
		}
		for _, one := range found {
			byUID[one.Record.UID] = one
		}
	}
	var found []Item
	for _, place := range places {
		if one, wanted := byUID[place.UID]; wanted {
			found = append(found, Item{one, place.page})
		}
	}
	if err := visit(found, places[len(places)-1].page); err != nil {
		return err
	}
	return ctx.Err()
}

// The orders of a list; empty: none.
const (
	SortDue     = "due"
	SortFailing = "failing"
)

// Cursor is the end of a page: behind a model in an order, or in a step of a walk.
type Cursor struct {
	Sort  string      `json:"sort,omitempty"`
	Score int64       `json:"score,omitempty"`
	Part  int         `json:"part,omitempty"`
	Place store.Place `json:"place,omitempty"` // where the step began
	UID   string      `json:"uid,omitempty"`
}

// String returns the cursor as the next command takes it.
func (p Cursor) String() string {
	text, _ := json.Marshal(p) // texts and numbers can be written
	return base64.RawURLEncoding.EncodeToString(text)
}

// ParseCursor reads the text of a cursor; empty: the beginning.
func ParseCursor(text, sort string) (p Cursor, err error) {
	if text == "" {
		return Cursor{Sort: sort, Place: store.WalkBegins}, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(raw, &p)
	}
	if err != nil || p.UID == "" && (sort != "" || p.Place == "") || p.Part < 0 {
		return p, document.Refuse("after", "a cursor as ls has printed it", document.Found(text))
	}
	if p.Sort != sort {
		return p, document.Refuse("after", "the cursor of a list in the same order", "that of another")
	}
	return p, nil
}
