package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"hash/maphash"
	"slices"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/scripts"
)

// The orders of a list.
const (
	sortDue     = "due"
	sortFailing = "failing"
)

// page is where a page of a list ends: behind a model that stands somewhere in an order, or was met in a step of a walk.
type page struct {
	Sort  string        `json:"sort,omitempty"`
	Score int64         `json:"score,omitempty"`
	Part  int           `json:"part,omitempty"`
	Place scripts.Place `json:"place,omitempty"` // where the step began
	UID   string        `json:"uid,omitempty"`
}

// String is the page as the next command is told of it.
func (p page) String() string {
	text, _ := json.Marshal(p) // texts and numbers can be written
	return base64.RawURLEncoding.EncodeToString(text)
}

// readPage reads what String has written; empty: the beginning.
func readPage(text, sort string) (p page, err error) {
	if text == "" {
		return page{Sort: sort, Place: scripts.WalkBegins}, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(raw, &p)
	}
	if err != nil || p.UID == "" || p.Part < 0 {
		return p, document.Refuse("--after", "a cursor as ls has told it", document.Found(text))
	}
	if p.Sort != sort {
		return p, document.Refuse("--after", "the cursor of a list in the same order", "that of another")
	}
	return p, nil
}

// pageSize is how many models are read at once.
const pageSize = 200

// placed is a model that a list comes by, and the page that ends with it.
type placed struct {
	scripts.Scored
	part *scripts.Store
	page page
}

// walk lists models in no order, from a page on.
func (l *lister) walk(ctx context.Context, queue *scripts.Queue) error {
	from, seed, listed := l.which.from, maphash.MakeSeed(), map[uint64]bool{} // of hashes, as the uids of a million models would take 100 MB
	for i := from.Part; i < len(queue.Parts); i++ {
		part := queue.Parts[i]
		for place := from.Place; place != scripts.WalkEnds; {
			uids, to, err := part.WalkModels(ctx, l.which.picks, place, pageSize)
			if err != nil {
				return queue.PartError(part, err)
			}
			slices.Sort(uids)
			var step []placed
			for _, uid := range uids {
				if hash := maphash.String(seed, uid); !listed[hash] && uid > from.UID { // SCAN may tell a key twice
					listed[hash] = true
					step = append(step, placed{scripts.Scored{UID: uid}, part, page{Part: i, Place: place, UID: uid}})
				}
			}
			for chunk := range slices.Chunk(step, pageSize) {
				if err := l.print(ctx, queue, chunk); err != nil {
					return err
				}
			}
			place, from.UID = to, ""
		}
		from = page{Place: scripts.WalkBegins}
	}
	return nil
}

// walkSorted lists models in an order, from a page on.
func (l *lister) walkSorted(ctx context.Context, queue *scripts.Queue) error {
	after := scripts.Scored{UID: l.which.from.UID, Score: l.which.from.Score}
	for {
		next, err := l.behind(ctx, queue, after)
		if err != nil || len(next) == 0 {
			return err
		}
		if err := l.print(ctx, queue, next); err != nil {
			return err
		}
		after = next[len(next)-1].Scored
	}
}

// behind reads the models of all parts that come next.
func (l *lister) behind(ctx context.Context, queue *scripts.Queue, after scripts.Scored) (next []placed, err error) {
	for _, part := range queue.Parts {
		keys := []string{part.Keys.Due(), part.Keys.Urgent()}
		if l.which.sort == sortFailing {
			keys = []string{part.Keys.Failing()}
		}
		for _, key := range keys {
			found, err := part.Behind(ctx, key, after, pageSize)
			if err != nil {
				return nil, queue.PartError(part, err)
			}
			for _, one := range found {
				next = append(next, placed{one, part, page{Sort: l.which.sort, Score: one.Score, UID: one.UID}})
			}
		}
	}
	slices.SortFunc(next, func(a, b placed) int { return a.Compare(b.Scored) })
	return next[:min(len(next), pageSize)], nil
}
