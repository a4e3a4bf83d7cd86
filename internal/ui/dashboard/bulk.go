package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
)

var (
	bulkPage     = page{path: "models/all", title: "All models that a filter shows", under: "models", file: "bulk", read: readBulk, edits: true}
	selectedPage = page{path: "models/selected", title: "Selected models", under: "models", file: "bulk", read: readSelected, form: true, edits: true}
)

var bulkActions = []string{string(model.BulkRun), string(model.BulkEnable), string(model.BulkDisable), string(model.CommandHold)}

// bulkSelection asks for a confirmation.
type bulkSelection struct {
	operate.Selected
	Action string
	UIDs   []string // of rows that somebody selected; nil: the models of a filter
	Back   string   // the address of the list of these
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

// readSelected asks for a confirmation about rows of a list.
func readSelected(_ context.Context, req *request) (any, error) {
	uids := req.query["uid"]
	page := &bulkSelection{Action: req.get("do"), UIDs: uids, Back: req.get("back"), Selected: operate.Selected{Models: len(uids), Examples: uids}}
	if !slices.Contains(bulkActions, page.Action) {
		return nil, document.Refuse("do", words.List(bulkActions), document.Found(page.Action))
	}
	if len(uids) == 0 || len(uids) > operate.BatchSize {
		return nil, document.Refuse("uid", fmt.Sprintf("1 to %d selected models", operate.BatchSize), strconv.Itoa(len(uids)))
	}
	for _, uid := range uids {
		if err := document.ValidateUID(uid); err != nil {
			return nil, err
		}
	}
	page.Selector = model.SelectUID + "=" + strings.Join(uids, "|")
	return page, nil
}

// changeSelected does the confirmed action to each selected model.
func changeSelected(ctx context.Context, req *request) (outcome, error) {
	read, err := readSelected(ctx, req)
	if err != nil {
		return outcome{}, err
	}
	page, _ := read.(*bulkSelection)
	if page.Action == string(model.CommandHold) {
		return hold(ctx, req, operate.HoldRequest{Selector: page.Selector, Ending: req.ending("for")})
	}
	requests := redis.Map(page.UIDs, func(uid string) *operate.Request {
		return &operate.Request{Command: model.Command{Type: model.CommandType(page.Action), UID: uid, By: req.operator.By, Reason: req.get("reason")}}
	})
	if err := operate.Execute(ctx, req.queue, requests); err != nil {
		return outcome{}, err
	}
	return page.told(requests)
}

// told says what became of each of the selected models.
func (page *bulkSelection) told(requests []*operate.Request) (outcome, error) {
	done, same, refused := 0, 0, ""
	for _, r := range requests {
		switch {
		case r.Refused != nil:
			refused = cmp.Or(refused, fmt.Sprintf(" Refused, for example: %s: %s", r.Command.UID, inWords(r.Refused)))
		case r.Result == operate.ResultUnchanged:
			same++
		default:
			done++
		}
	}
	text := fmt.Sprintf("%s: %d of %s done, %d need it not.", page.Action, done, &page.Selected, same)
	if refused != "" {
		return outcome{}, errors.New(text + refused)
	}
	return outcome{text: text}, nil
}
