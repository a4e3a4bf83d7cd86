package operate

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// Limit is a limit that was set, or a key of which something runs or waits, in all parts of a queue.
type Limit struct {
	Key     string    `json:"key"`
	Set     bool      `json:"set"`  // at run time
	Max     int       `json:"most"` // attempts at a time; 0: any number
	Rate    string    `json:"rate"`
	Until   time.Time `json:"until"`
	By      string    `json:"by"`
	Reason  string    `json:"reason"`
	Running int64     `json:"running"`
	Parked  int64     `json:"parked"`
	Next    time.Time `json:"next_start_at"` // of its rate, or when a worker asked to be left alone until
}

// LimitRequest is a limit as somebody asks for it.
type LimitRequest struct {
	Key     string // or a template of keys
	Running string // attempts at a time; empty: any number
	Rate    string // of starts; empty: any
	Reason  string
	Ending  Ending
}

// SetLimit bounds what runs of a key, or of all keys of a template.
func (o Operator) SetLimit(ctx context.Context, r LimitRequest) (err error) {
	limit := model.Limit{Name: r.Key, Reason: r.Reason, By: o.By}
	if r.Running != "" {
		if limit.Running, err = strconv.Atoi(r.Running); err != nil {
			return refuse("running", fmt.Sprint("1 to ", model.MaxRunning), document.Found(r.Running))
		}
	}
	if r.Rate != "" {
		if limit.Rate, err = policy.ParseRate(r.Rate); err != nil {
			return refusedAt("rate", err)
		}
	}
	if limit.Since, err = o.Queue.Parts[0].Now(ctx); err != nil {
		return err
	}
	if limit.Until, err = r.Ending.at(limit.Since); err != nil {
		return err
	}
	if err := limit.Validate(); err != nil {
		return refused(err)
	}
	return o.Queue.Fleet().PutLimit(ctx, &limit)
}

// RemoveLimit forgets a limit that was set.
func (o Operator) RemoveLimit(ctx context.Context, key string) error {
	removed, err := o.Queue.Fleet().RemoveLimit(ctx, key)
	if err == nil && !removed {
		err = fmt.Errorf("%s: expected a limit that was set, found none of that name", document.OneLine(key))
	}
	return err
}

// Limits lists these keys and those for which a limit was set; without keys, all of which something runs or waits.
func (o Operator) Limits(ctx context.Context, keys ...string) ([]Limit, error) {
	uses, err := o.Queue.Fleet().LimitUses(ctx, keys...)
	limits := make([]Limit, len(uses))
	for i, use := range uses {
		l := use.Limit
		limits[i] = Limit{l.Name, use.Set, l.Running, l.Rate.String(), l.Until, l.By, l.Reason, use.Running, use.Parked, use.Free}
	}
	return limits, err
}
