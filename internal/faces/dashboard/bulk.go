package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/refreshd/refreshd/internal/store"
)

// bulk is a bulk as a page shows it.
type bulk struct {
	store.Bulk

	Over         bool
	Models, Rate string // its selector and its rate, in words
	Since, Ended moment
	Refused      int64
}

// mostBulks is how many bulks a page shows.
const mostBulks = 50

func readBulks(ctx context.Context, v *visit, now time.Time) ([]bulk, error) {
	sums, err := v.queue.Fleet().Bulks(ctx)
	slices.Reverse(sums) // what goes on first, and the newest of it
	bulks := make([]bulk, min(len(sums), mostBulks))
	for i := range bulks {
		b := sums[i]
		bulks[i] = bulk{
			Bulk: b, Over: b.State().Over(), Models: cmp.Or(b.Selector.String(), "all models"), Rate: b.Rate.String(), Since: newMoment(b.Since, now),
			Ended: newMoment(b.EndedAt, now), Refused: b.Refusals(),
		}
	}
	return bulks, err
}

func cancelBulk(ctx context.Context, v *visit) (outcome, error) {
	id := v.get("id")
	cancelled, err := v.queue.Fleet().CancelBulk(ctx, id)
	if err == nil && !cancelled {
		err = fmt.Errorf("%s: expected a bulk that is not over, found none of that name", id)
	}
	return outcome{told: "The bulk " + id + " is cancelled; what it has done stays done."}, err
}
