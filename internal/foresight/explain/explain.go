package explain

import (
	"cmp"
	"context"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// Explanation is a model explained.
type Explanation struct {
	Shown

	Attempts []model.Attempt // that ended last, newest first
	Forecast model.Forecast
	// Gate is what the next start waits for, if nobody knows when that opens; "": none.
	Gate model.Blocker

	narrator narrator
}

// Read reads all that is told of a model that must be stored.
func Read(ctx context.Context, store *store.Store, uid string) (*Explanation, error) {
	found, attempts, err := ReadPast(ctx, store, uid)
	if err != nil {
		return nil, err
	}
	if err := found.ReadLiveness(ctx, store); err != nil {
		return nil, err
	}
	record := found.Record
	e := &Explanation{Shown: found, Attempts: attempts, narrator: narrator{Shown: found, m: &record.Model, zone: ZoneOf(&record.Model)}}
	s := &e.narrator
	if s.admission, err = store.Report().Admission(ctx, s.m, s.Now); err != nil {
		return nil, err
	}
	e.Forecast, e.Gate = s.admission.Gates.Forecast(s.m, s.Now)
	s.gate = e.Gate
	if found.Status == model.StatusQueued || found.Status == model.StatusDue {
		if s.place, err = store.Report().QueuePosition(ctx, record); err != nil {
			return nil, err
		}
	}
	if id := record.FingerprintID; id != "" {
		if s.alike, err = store.Report().FailingAlike(ctx, id); err != nil {
			return nil, err
		}
	}
	s.m.Fault = cmp.Or(s.m.Fault, e.Forecast.RuleError)
	return e, nil
}

// Story is the model up to now, in lines.
func (e *Explanation) Story() []string { return e.narrator.story(e.Attempts) }

// Next is what follows, in lines.
func (e *Explanation) Next() []string { return e.narrator.forecast(e.Forecast) }
