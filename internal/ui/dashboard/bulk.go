package dashboard

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
)

var bulkPage = page{path: "models/all", title: "All models that a filter shows", under: "models", file: "bulk", read: readBulk, edits: true}

var bulkActions = []string{string(model.BulkRun), string(model.BulkEnable), string(model.BulkDisable), string(model.CommandHold)}

// bulkSelection asks for a confirmation.
type bulkSelection struct {
	operate.Selected
	Action string
}

func readBulk(ctx context.Context, req *request) (any, error) {
	page := &bulkSelection{Action: req.get("do")}
	if !slices.Contains(bulkActions, page.Action) {
		return nil, document.Refuse("do", words.List(bulkActions), document.Found(page.Action))
	}
	var err error
	page.Selected, err = req.operator.Select(ctx, req.get("l"), true)
	return page, err
}

// beginBulk does the confirmed action to all models of a filter, unless they have become more by over a tenth since.
func beginBulk(ctx context.Context, req *request) (outcome, error) {
	counted, err := strconv.Atoi(req.get("counted"))
	if number := req.get("number"); err != nil || number != req.get("counted") {
		return outcome{}, document.Refuse("number", req.get("counted")+", which is how many models the page has counted", document.Found(number))
	}
	read, err := readBulk(ctx, req)
	if err != nil {
		return outcome{}, err
	}
	page, _ := read.(*bulkSelection)
	if page.Models > counted+counted/10 {
		return outcome{}, fmt.Errorf("the filter shows %s now, and you confirmed %d. Nothing was done", &page.Selected, counted)
	}
	next := req.Link("steering")
	if page.Action == string(model.CommandHold) {
		done, err := hold(ctx, req, operate.HoldRequest{Selector: page.Selector, Ending: req.ending("for")})
		if err == nil {
			done.next = next
		}
		return done, err
	}
	id, err := req.operator.BeginBulk(ctx, operate.BulkRequest{
		Action: model.CommandType(page.Action), Selector: page.Selector, Rate: req.get("rate"), Reason: req.get("reason"), Sure: true,
	})
	if err != nil {
		return outcome{}, err
	}
	return outcome{text: fmt.Sprintf("%s: the bulk %s has begun for %s. This page shows how far it is.", page.Action, id, &page.Selected), next: next}, nil
}
