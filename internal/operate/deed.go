package operate

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// DeedsRequest picks deeds.
type DeedsRequest struct {
	By     string // who did it; empty: anybody
	About  string // a part of the deed, of what it is about, or of its reason; empty: anything
	Since  string // an RFC 3339 time, or a length of time before now; empty: all that are kept
	Before string // from where on, as a page has it; empty: the newest
	Limit  int    // at most so many
}

// Deeds returns what people and programs did, the newest first, and where the next ones begin; empty: there are none.
func Deeds(ctx context.Context, o Operator, r DeedsRequest) ([]model.Deed, string, error) {
	var since time.Time
	if r.Since != "" {
		now, err := o.Queue.Parts[0].Now(ctx)
		if err != nil {
			return nil, "", err
		}
		if since, err = readSince(r.Since, now); err != nil {
			return nil, "", err
		}
	}
	var pick func(*model.Deed) bool
	if about := strings.ToLower(r.About); about != "" || r.By != "" || r.Since != "" {
		pick = func(d *model.Deed) bool {
			text := strings.ToLower(strings.Join([]string{d.Verb, d.What, d.Reason}, "\n"))
			return !d.At.Before(since) && (r.By == "" || strings.EqualFold(d.By, r.By)) && strings.Contains(text, about)
		}
	}
	deeds, more, err := report.OfQueue(o.Queue).Deeds(ctx, r.Before, r.Limit, pick)
	if _, is := errors.AsType[*document.Error](err); is {
		err = refused(err)
	}
	return deeds, more, err
}

func readSince(text string, now time.Time) (time.Time, error) {
	if length, err := document.ParseDuration(text); err == nil && length > 0 {
		return now.Add(-length), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, refuse("since", "a length of time such as 24h, or an RFC 3339 time", document.Found(text))
	}
	return at, nil
}
