package dashboard

import (
	"cmp"
	"context"
	"fmt"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

func putHold(ctx context.Context, req *request) (outcome, error) {
	now, err := req.now(ctx)
	if err != nil {
		return outcome{}, err
	}
	h := &model.Hold{ID: cmp.Or(req.get("id"), store.NewHoldID()), Since: now, Reason: document.Shorten(req.get("reason"), document.MaxText), By: req.by}
	if h.Reason == "" {
		return outcome{}, document.Refuse("reason", "why, for whoever wonders", "nothing")
	}
	if h.Selector, err = model.ParseSelector(req.get("selector")); err != nil {
		return outcome{}, err
	}
	if h.Selector.All() && req.get("all") == "" {
		return outcome{}, document.Refuse("selector", "one such as tenant=t1, or the mark that all models are meant", "neither")
	}
	if h.Until, err = readEnd("end", req.get("end"), now); err != nil {
		return outcome{}, err
	}
	if err := h.Validate(); err != nil {
		return outcome{}, err
	}
	if err := req.queue.Fleet().PutHold(ctx, h); err != nil {
		return outcome{}, fmt.Errorf("%w; in parts of the queue it may have begun: release %s", err, h.ID)
	}
	text := fmt.Sprintf("The hold %s keeps %s from starting.", h.ID, cmp.Or(h.Selector.String(), "all models"))
	if req.get("cancel") != "" {
		bulk, err := req.queue.Fleet().CancelHeld(ctx, h)
		if err != nil {
			return outcome{}, err
		}
		text += " The bulk " + bulk + " takes back what runs."
	}
	return outcome{text: text}, nil
}
