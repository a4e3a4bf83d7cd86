package dashboard

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/refreshd/refreshd/internal/listing"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
)

var modelsPage = page{path: "models", title: "Models", nav: true, file: "models", read: readModels, live: []string{"models-list"}}

const (
	maxRows = 50
	// maxSteps bounds the search for rare models: some thousands of models. The next page goes on there.
	maxSteps = 25
)

// The orders of the rows of a page beside those of listing, which are those of the whole list.
const (
	sortUID     = "uid"
	sortSuccess = "success"
)

var sorts = []string{listing.SortDue, listing.SortFailing, sortUID, sortSuccess}

type modelList struct {
	Text, Sort string
	Heads      []head
	Actions    []string // on all of them
	Chips      []chip
	Shown      *reading  // of the text
	Others     []reading // other meanings
	Rows       []listing.Item
	First      bool                   // it is the first page
	Next       string                 // where the next page begins; "": there is none
	Most       func() (string, error) // how many models there are at most, which only whole pages ask for
	Searched   bool                   // the page ended before it was full: the search goes on with the next one
	NoMatch    string                 // why there is none, with the nearest label; "": there are some, or nobody knows
}

// head is that of a column.
type head struct {
	Text, Sort string // the order by it; empty: there is none
	Order      string // ascending or none
}

// addHeads lists the columns of the table.
func (l *modelList) addHeads() {
	l.Heads = []head{{"Model", sortUID, ""}, {"State", "", ""}, {"Refresh at", listing.SortDue, ""}, {"Because", "", ""}, {"Failing since", listing.SortFailing, ""}, {"Last success", sortSuccess, ""}, {"Labels", "", ""}}
	for i := range l.Heads {
		if h := &l.Heads[i]; h.Sort == "" || h.Sort != l.Sort {
			h.Order = "none"
		} else {
			h.Order, h.Sort = "ascending", "" // the next click ends it
		}
	}
}

// Paged: the order is that of each page.
func (l *modelList) Paged() bool {
	return l.inPage() && (!l.First || l.Next != "")
}

func (l *modelList) inPage() bool { return l.Sort == sortUID || l.Sort == sortSuccess }

// sortRows sorts the rows of the page, unless the list has an order.
func (l *modelList) sortRows() {
	slices.SortStableFunc(l.Rows, func(a, b listing.Item) int {
		switch l.Sort {
		case sortUID:
			return cmp.Compare(a.Record.UID, b.Record.UID)
		case sortSuccess:
			return a.Record.LastSuccessAt.Compare(b.Record.LastSuccessAt)
		default:
			return 0
		}
	})
}

type chip struct {
	Status, Selector string
	Count            int64
	Current          bool
}

// Filter is the selector of all models that the pages of the list show.
func (l *modelList) Filter() string {
	status := map[string]string{listing.SortDue: "status=due|scheduled", listing.SortFailing: "status=failing"}[l.Sort]
	return strings.Trim(l.Shown.Selector+","+status, ",")
}

var errFull = errors.New("the page is full")

func readModels(ctx context.Context, req *request) (any, error) {
	list := &modelList{Text: strings.TrimSpace(strings.ToValidUTF8(req.get("l"), "\uFFFD")), Sort: req.get("sort"), Actions: bulkActions, First: req.get("after") == ""}
	if list.Sort != "" && !slices.Contains(sorts, list.Sort) {
		return nil, document.Refuse("sort", strings.ReplaceAll(words.List(sorts), " and ", " or "), document.Found(list.Sort))
	}
	stats, err := report.OfQueue(req.queue).Stats(ctx)
	if err != nil {
		return nil, err
	}
	found := []reading{{Count: stats.Sample().Values[report.MetricModels], about: "of the queue, and those that are finished"}}
	switch list.Sort {
	case listing.SortDue:
		found[0] = reading{Count: stats.Due + stats.Waiting, about: "that are due or scheduled"}
	case listing.SortFailing:
		found[0] = reading{Count: stats.Failing, about: "that are failing"}
	}
	if list.Text != "" {
		if found, err = req.readings(ctx, list.Text, &stats); err != nil {
			return nil, err
		}
	}
	if len(found) > 0 {
		err = list.show(ctx, req, found, 0, &stats)
	}
	if other := slices.IndexFunc(found, func(r reading) bool { return r.Count > 0 }); err == nil && len(list.Rows) == 0 && other > 0 {
		list.Next, list.Searched, list.Sort = "", false, req.get("sort")
		err = list.show(ctx, req, found, other, &stats)
	}
	if err == nil && list.Shown != nil && list.First && !list.Searched && len(list.Rows) == 0 {
		list.NoMatch, err = operate.NoMatch(ctx, req.operator, list.Shown.Selector)
	}
	list.addChips(&stats)
	list.addHeads()
	list.Most = func() (string, error) { return list.countMost(ctx, req) }
	list.sortRows()
	return list, err
}

// show reads the models of one reading.
func (l *modelList) show(ctx context.Context, req *request, found []reading, i int, stats *report.Stats) (err error) {
	l.Shown, l.Others = &found[i], slices.Delete(slices.Clone(found), i, i+1)
	onlyDue := slices.Equal(l.Shown.picks.Only(model.SelectStatus), []string{string(model.StatusDue)})
	if onlyDue && l.Sort == "" {
		l.Sort = listing.SortDue // its index has them first
	}
	which := listing.Query{Picks: l.Shown.picks, Sort: l.Sort}
	if l.inPage() {
		which.Sort = ""
	}
	if which.From, err = listing.ParseCursor(req.get("after"), which.Sort); err != nil {
		return err
	}
	steps := 0
	err = listing.Walk(ctx, req.queue, which, func(found []listing.Item, behind listing.Cursor) error {
		found = found[:min(len(found), maxRows-len(l.Rows))]
		if l.Rows = append(l.Rows, found...); len(l.Rows) == maxRows {
			l.Next = found[len(found)-1].Cursor.String()
			return errFull
		}
		if onlyDue && l.Sort == listing.SortDue && behind.Score > stats.At.UnixMilli() {
			return errFull // the others start later
		}
		if steps++; steps == maxSteps {
			l.Searched, l.Next = true, behind.String()
			return errFull
		}
		return nil
	})
	if errors.Is(err, errFull) {
		err = nil
	}
	if l.First && l.Next == "" && (which.Sort == "" || onlyDue) {
		if l.Shown.Count = int64(len(l.Rows)); l.Shown.Selector == "" {
			l.Shown.about = "of the queue"
		}
	}
	return err
}

// Uncounted: to know how many models the filter picks takes a walk, which somebody may ask for.
func (l *modelList) Uncounted() bool {
	return l.Shown != nil && (l.Shown.Count == unknown || l.Shown.Selector == "" && l.Sort != listing.SortDue && l.Sort != listing.SortFailing && l.Next != "")
}

// countMost says how many models are shown, or at most, where their number is not known; empty: nobody knows.
func (l *modelList) countMost(ctx context.Context, req *request) (text string, err error) {
	if l.Uncounted() && req.get("count") != "" {
		found, err := req.operator.Select(ctx, l.Shown.Selector, false)
		return "Counted one by one: " + found.String() + ".", err
	}
	if l.Shown == nil || l.Shown.Count != unknown {
		return "", nil
	}
	sum := int64(0)
	for _, part := range req.queue.Parts {
		some, err := part.Report().MayPick(ctx, l.Shown.picks)
		if err != nil || some == 0 {
			return "", err
		}
		sum += some
	}
	return "There are at most " + words.Count(int(sum), "model", "models") + " of them.", nil
}

func (l *modelList) addChips(stats *report.Stats) {
	for _, one := range []struct {
		status model.Status
		count  int64
	}{
		{model.StatusFailing, stats.Failing}, {model.StatusDue, stats.Due}, {model.StatusRunning, stats.Running},
		{model.StatusDisabled, stats.Disabled}, {model.StatusParked, stats.Parked}, {model.StatusStale, stats.Freshness[model.FreshnessStale]},
	} {
		selector := model.SelectStatus + "=" + string(one.status)
		shown := l.Shown != nil && l.Shown.Selector == selector
		if l.Chips = append(l.Chips, chip{string(one.status), selector, one.count, shown}); shown && l.Shown.Count == unknown {
			l.Shown.Count = one.count
		}
	}
}

// redirect is the error of a page that has another address.
type redirect string

func (r redirect) Error() string { return "expected the address " + string(r) }
