package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/model"
)

// Indexed are models of one index, in its order.
type Indexed struct {
	Members []Scored
	Due     bool // of those that wait for their time and nothing else
}

// UIDs are those of the models.
func (i Indexed) UIDs() []string {
	return SendEach(i.Members, func(one Scored) string { return one.UID })
}

// EachIndexed hands over the models that are disabled, wait for anything or run, in chunks. Those that wait for their time come last and in its order:
// of these one that starts and ends meanwhile may come twice. What moves to an index that was walked already may be missed.
func (s Report) EachIndexed(ctx context.Context, visit func(Indexed) error) error {
	k, seen, size := &s.Keys, newSeen(), ScanCount
	for _, key := range []string{k.Disabled, k.Parked, k.Urgent, k.Running, k.Due} {
		for after, more := (Scored{}), true; more; {
			page, err := s.Behind(ctx, key, after, size)
			if err != nil {
				return err
			}
			if more = len(page) == size; more {
				after = page[size-1]
			}
			page = slices.DeleteFunc(page, func(one Scored) bool { return seen.knows(one.UID, key != k.Due) })
			if err := visit(Indexed{page, key == k.Due}); err != nil {
				return err
			}
		}
	}
	return nil
}

var plannedNames = SendEach(fieldNames[:plannedFields], func(name string) any { return name })

// ReadPlanned reads of models that stand in the set due what tells when they start, in half the time that all takes: their other fields are empty.
// Of those that wait for more than a planned refresh, or have moved on since, all is read. None has its payload.
func (s Report) ReadPlanned(ctx context.Context, due []Scored, now time.Time) ([]*Record, error) {
	pipe := s.Clients.Read.Pipeline()
	replies := SendEach(due, func(one Scored) *redis.StringSliceCmd {
		asked := append([]any{"hmget", s.Keys.Model(one.UID)}, plannedNames...)
		reply := redis.NewStringSliceCmd(ctx, asked...) // that of HMGET boxes each value
		_ = pipe.Process(ctx, reply)                    // it is put into the pipeline
		return reply
	})
	guess := s.policies.guess()
	guessed := pipe.HMGet(ctx, s.Keys.Policies, policyFields(guess)...)
	if err := ExecReads(ctx, pipe); err != nil {
		return nil, fmt.Errorf("read what is planned: %w", err)
	}
	all, records, others := make([]Record, len(due)), make([]*Record, len(due)), []string{}
	for i, one := range due {
		all[i].Exists, all[i].Model = true, decode(one.UID, replies[i].Val())
		records[i] = &all[i]
	}
	if err := s.resolve(ctx, slices.Values(records), s.compile(guess, guessed.Val())); err != nil {
		return nil, err
	}
	for i, one := range due {
		r := records[i]
		missed := r.Policy.Misfire.Limited && !r.RefreshAt.After(now)
		if r.RefreshAt.UnixMilli() != one.Score || r.Trigger != model.TriggerPlanned || !r.PlannedFor.IsZero() || missed {
			records[i], others = nil, append(others, one.UID)
		}
	}
	whole, err := s.load(ctx, others, nil)
	return slices.AppendSeq(slices.DeleteFunc(records, func(r *Record) bool { return r == nil }), maps.Values(whole)), err
}
