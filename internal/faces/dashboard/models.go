package dashboard

import (
	"context"
	"errors"
	"strings"

	"github.com/refreshd/refreshd/internal/listing"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

var modelsPage = page{path: "models", title: "Models", nav: true, file: "models", read: readModels, live: []string{"models-list"}}

const (
	// maxRows is how many models a page shows.
	maxRows = 50
	// maxSteps bounds how far a page looks for models that a selector picks rarely: some thousands of models. The next page goes on there.
	maxSteps = 25
)

type modelList struct {
	Selector, Sort string
	Statuses       []string
	Rows           []listing.Listed
	First          bool   // it is the first page
	Next           string // where the next page begins; "": there is none
	Searched       bool   // the page ended before it was full: the search goes on with the next one
}

var errFull = errors.New("the page is full")

func readModels(ctx context.Context, req *request) (any, error) {
	list := &modelList{Selector: strings.TrimSpace(req.get("l")), Sort: req.get("sort"), Statuses: model.SelectStatuses, First: req.get("after") == ""}
	which := listing.Which{Sort: list.Sort}
	switch list.Sort {
	case "", listing.SortDue, listing.SortFailing:
	default:
		return nil, document.Refuse("sort", "due or failing", document.Found(list.Sort))
	}
	var err error
	if which.Picks, err = model.ParseSelector(list.Selector); err != nil {
		return nil, err
	}
	if which.From, err = listing.ReadPage(req.get("after"), list.Sort); err != nil {
		return nil, err
	}
	steps := 0
	err = listing.Walk(ctx, req.queue, which, func(found []listing.Listed, behind listing.Page) error {
		found = found[:min(len(found), maxRows-len(list.Rows))]
		if list.Rows = append(list.Rows, found...); len(list.Rows) == maxRows {
			list.Next = found[len(found)-1].Page.String()
			return errFull
		}
		if steps++; steps == maxSteps {
			list.Searched, list.Next = true, behind.String()
			return errFull
		}
		return nil
	})
	if err != nil && !errors.Is(err, errFull) {
		return nil, err
	}
	return list, nil
}
