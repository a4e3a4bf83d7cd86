package dispatcher

import (
	"context"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// passMissing decides about models whose attempt has expired and was not found in the input list by its entry.
func (d *Dispatcher) passMissing(ctx context.Context, missing []*store.Transition, now time.Time, round *Round) error {
	w, line := work{due: store.Due{Now: now}}, line{missing: map[string]string{}}
	for _, withdrawal := range missing {
		w.due.Expired = append(w.due.Expired, withdrawal.UID())
		line.missing[withdrawal.UID()] = withdrawal.AttemptUID()
	}
	var err error
	if line.queued, err = d.store.Queued(ctx); err != nil {
		return err
	}
	if line.fronts, err = d.store.HeadSamples(ctx); err != nil {
		return err
	}
	_, err = d.pass(ctx, &w, &line, round)
	return err
}

// line is the input list as it was looked through.
type line struct {
	queued  map[string]string // its entries by attempt uid
	missing map[string]string // attempts by model that were not found before: whichever was started since may stand there now
	fronts  model.HeadSamples
}

// precedes reports whether the attempt of a record was started after the list was looked through. A clock that was set back since makes it
// look old.
func (l *line) precedes(record *store.Record) bool {
	return l != nil && l.missing[record.UID] != record.AttemptUID
}

// entry is that of an attempt which waits in line.
func (l *line) entry(attemptUID string) (entry string, waits bool) {
	if l != nil {
		entry, waits = l.queued[attemptUID]
	}
	return entry, waits
}
