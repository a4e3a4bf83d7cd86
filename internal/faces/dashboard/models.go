package dashboard

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/foresight/explain"
	"github.com/refreshd/refreshd/internal/listing"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
)

var modelsPage = page{path: "models", title: "Models", nav: true, file: "models", read: readModels, live: []string{"models-list"}}

const (
	// mostRows is how many models a page shows.
	mostRows = 50
	// mostSteps bounds how far a page looks for models that a selector picks rarely: some thousands of models. The next page goes on there.
	mostSteps = 25
)

// modelList is a page of models.
type modelList struct {
	Selector, Sort string
	Statuses       []string
	Rows           []modelRow
	Next, First    string // addresses; "": there is none
	Searched       bool   // the page ended before it was full: the search goes on with the next one
}

// modelRow is a model in a list.
type modelRow struct {
	UID, Address  string
	Status        string // in words
	Bad           bool
	RefreshAt, In string
	Why           string
	FailingSince  string
	Reason        string // why it is disabled, or failed last
	Labels        []label
}

// label is one of a model, with the list of all models that have it.
type label struct{ Text, Address string }

// errFull ends a walk.
var errFull = errors.New("the page is full")

func readModels(ctx context.Context, v *visit) (any, error) {
	list := &modelList{Selector: strings.TrimSpace(v.get("l")), Sort: v.get("sort"), Statuses: model.SelectStatuses}
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
	if which.From, err = listing.ReadPage(v.get("after"), list.Sort); err != nil {
		return nil, err
	}
	steps := 0
	err = listing.Walk(ctx, v.queue, which, func(found []listing.Listed, behind listing.Page) error {
		for i := range found {
			list.Rows = append(list.Rows, v.row(&found[i].Shown))
			if len(list.Rows) == mostRows {
				list.Next = v.link("models", "l", list.Selector, "sort", list.Sort, "after", found[i].Page.String())
				return errFull
			}
		}
		if steps++; steps == mostSteps {
			list.Searched = true
			list.Next = v.link("models", "l", list.Selector, "sort", list.Sort, "after", behind.String())
			return errFull
		}
		return nil
	})
	if err != nil && !errors.Is(err, errFull) {
		return nil, err
	}
	if v.get("after") != "" {
		list.First = v.link("models", "l", list.Selector, "sort", list.Sort)
	}
	return list, nil
}

func (s *site) row(shown *explain.Shown) modelRow {
	r := shown.Record
	row := modelRow{
		UID: r.UID, Address: s.link("model", "uid", r.UID), Status: shown.StatusText(), Why: shown.Because, Reason: shown.Reason,
		Bad: r.Disabled || r.Broken || !r.FailingSince.IsZero(),
	}
	if r.Disabled {
		row.Reason = "" // the state tells it
	}
	if !r.RefreshAt.IsZero() {
		row.RefreshAt, row.In = model.FormatTime(r.RefreshAt), words.Distance(r.RefreshAt, shown.Now)
	}
	if !r.FailingSince.IsZero() {
		row.FailingSince = words.Roughly(max(0, shown.Now.Sub(r.FailingSince).Truncate(time.Second)))
	}
	for _, term := range model.LabelTerms(r.Labels) {
		row.Labels = append(row.Labels, label{term, s.link("models", "l", term)})
	}
	return row
}
