package dashboard

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// limit is a limit that was set, or a key that one counts by, as a page shows it.
type limit struct {
	store.LimitUse

	Rate        string
	Until, Next moment
}

func readLimits(ctx context.Context, v *visit, keys []string, now time.Time) ([]limit, error) {
	slices.Sort(keys)
	uses, err := v.queue.Fleet().LimitUses(ctx, slices.Compact(keys)...)
	var limits []limit
	for _, use := range uses {
		if use.Limit.Name != "" {
			limits = append(limits, limit{use, use.Limit.Rate.String(), newMoment(use.Limit.Until, now), newMoment(use.Free, now)})
		}
	}
	return limits, err
}

// setLimit sets a limit for a key, or for all keys of a template.
func setLimit(ctx context.Context, v *visit) (outcome, error) {
	now, err := v.queue.Parts[0].Now(ctx)
	if err != nil {
		return outcome{}, err
	}
	l := &model.Limit{Name: v.get("key"), Since: now, Reason: document.Shorten(v.get("reason"), document.MaxText), By: v.by}
	if text := v.get("running"); text != "" {
		if l.Running, err = strconv.Atoi(text); err != nil {
			return outcome{}, document.Refuse("running", "1 to 100000", document.Found(text))
		}
	}
	if text := v.get("rate"); text != "" {
		if l.Rate, err = policy.ParseRate(text); err != nil {
			return outcome{}, document.Place(err, "rate")
		}
	}
	if l.Until, err = readEnd("end", v.get("end"), now); err != nil {
		return outcome{}, err
	}
	if err := l.Validate(); err != nil {
		return outcome{}, err
	}
	return outcome{told: "The limit of " + l.Name + " is set."}, v.queue.Fleet().PutLimit(ctx, l)
}

func removeLimit(ctx context.Context, v *visit) (outcome, error) {
	removed, err := v.queue.Fleet().RemoveLimit(ctx, v.get("key"))
	if err == nil && !removed {
		err = document.Refuse("key", "that of a limit that was set", document.Found(v.get("key")))
	}
	return outcome{told: "The limit of " + v.get("key") + " is forgotten: what policies say is in force."}, err
}
