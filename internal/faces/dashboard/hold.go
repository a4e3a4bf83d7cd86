package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// hold is a hold as a page shows it.
type hold struct {
	store.HoldSum

	Models       string // its selector, in words
	Since, Until moment
	Link         string // of the models that it stops
}

func readHolds(ctx context.Context, v *visit, now time.Time) ([]hold, error) {
	sums, err := v.queue.Fleet().Holds(ctx)
	holds := make([]hold, len(sums))
	for i, sum := range sums {
		holds[i] = hold{
			HoldSum: sum, Models: cmp.Or(sum.Selector.String(), "all models of the queue"), Since: newMoment(sum.Since, now), Until: newMoment(sum.Until, now),
			Link: v.link("models", "l", sum.Selector.String()),
		}
	}
	return holds, err
}

func putHold(ctx context.Context, v *visit) (outcome, error) {
	now, err := v.queue.Parts[0].Now(ctx)
	if err != nil {
		return outcome{}, err
	}
	h := &model.Hold{ID: cmp.Or(v.get("id"), store.NewHoldID()), Since: now, Reason: document.Shorten(v.get("reason"), document.MaxText), By: v.by}
	if h.Reason == "" {
		return outcome{}, document.Refuse("reason", "why, for whoever wonders", "nothing")
	}
	if h.Selector, err = model.ParseSelector(v.get("selector")); err != nil {
		return outcome{}, err
	}
	if h.Selector.All() && v.get("all") == "" {
		return outcome{}, document.Refuse("selector", "one such as tenant=t1, or the mark that all models are meant", "neither")
	}
	if h.Until, err = readEnd("end", v.get("end"), now); err != nil {
		return outcome{}, err
	}
	if err := h.Validate(); err != nil {
		return outcome{}, err
	}
	if err := v.queue.Fleet().PutHold(ctx, h); err != nil {
		return outcome{}, fmt.Errorf("%w; in parts of the queue it may have begun: release %s", err, h.ID)
	}
	told := fmt.Sprintf("The hold %s keeps %s from starting.", h.ID, cmp.Or(h.Selector.String(), "all models"))
	if v.get("cancel") != "" {
		bulk, err := v.queue.Fleet().CancelHeld(ctx, h)
		if err != nil {
			return outcome{}, err
		}
		told += " The bulk " + bulk + " takes back what runs."
	}
	return outcome{told: told}, nil
}
