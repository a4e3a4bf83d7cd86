package dashboard

import (
	"context"
	"strconv"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// setLimit sets a limit for a key, or for all keys of a template.
func setLimit(ctx context.Context, req *request) (outcome, error) {
	now, err := req.now(ctx)
	if err != nil {
		return outcome{}, err
	}
	l := &model.Limit{Name: req.get("key"), Since: now, Reason: document.Shorten(req.get("reason"), document.MaxText), By: req.by}
	if text := req.get("running"); text != "" {
		if l.Running, err = strconv.Atoi(text); err != nil {
			return outcome{}, document.Refuse("running", "1 to 100000", document.Found(text))
		}
	}
	if text := req.get("rate"); text != "" {
		if l.Rate, err = policy.ParseRate(text); err != nil {
			return outcome{}, document.Place(err, "rate")
		}
	}
	if l.Until, err = readEnd("end", req.get("end"), now); err != nil {
		return outcome{}, err
	}
	if err := l.Validate(); err != nil {
		return outcome{}, err
	}
	return outcome{text: "The limit of " + l.Name + " is set."}, req.queue.Fleet().PutLimit(ctx, l)
}

func removeLimit(ctx context.Context, req *request) (outcome, error) {
	removed, err := req.queue.Fleet().RemoveLimit(ctx, req.get("key"))
	if err == nil && !removed {
		err = document.Refuse("key", "that of a limit that was set", document.Found(req.get("key")))
	}
	return outcome{text: "The limit of " + req.get("key") + " is forgotten: what policies say is in force."}, err
}
