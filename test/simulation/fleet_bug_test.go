package simulation

import (
	"context"
	"slices"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// fleetBugs are those of freshness, of causes of failures, of what a hold takes back, and of what is moved.
var fleetBugs = []bug{
	{name: "stale is told twice", ages: true, store: func(s store.Pool) queue { return repeating{s} }},
	{name: "an owner is told stale twice", ages: true, mark: "outbox",
		line: "notices[#notices + 1] = notice or nil if notice and entry[2] == 'became_stale' then notices[#notices + 1] = notice end"},
	{name: "an owner is not told fresh beside recovered", slow: true, ages: true, mark: "second"},
	{name: "a disabled model never goes stale", ages: true, store: func(s store.Pool) queue {
		return sparing{s, func(r *store.Record) bool { return r.Disabled }}
	}},
	{name: "a parked model never goes stale", slow: true, ages: true, steers: true, store: func(s store.Pool) queue { return sparing{s, func(r *store.Record) bool { return r.Parked() }} }},
	{name: "nobody looks at ages", ages: true, store: func(s store.Pool) queue {
		return sparing{s, func(*store.Record) bool { return true }}
	}},
	{name: "an age is not listed", ages: true, mark: "ages"},
	{name: "what is stale grows older", ages: true, mark: "ages no more"},
	{name: "what has succeeded is listed as never", slow: true, ages: true, store: func(s store.Pool) queue {
		return altered{s, func(r *store.Record) {
			if r.Freshness == model.FreshnessNever {
				r.Freshness = model.Fresh
			}
		}}
	}},
	{name: "what is late is not listed", ages: true, mark: "late"},
	{name: "what is fresh again is listed as late", ages: true, mark: "late no more"},
	{name: "what is stale is not listed", ages: true, mark: "stale"},
	{name: "what is fresh again is listed as stale", ages: true, mark: "stale no more"},

	{name: "a removed model is failing for ever", few: true, mark: "sort", line: "if kind.error or kind.sound and not kind.remove then"},
	{name: "a cause is never left", few: true, mark: "leave the error", line: "if tonumber(redis.call('ZINCRBY', errors, 0, id)) > 0 then"},
	{name: "a cause counts one model", slow: true, few: true, mark: "join the error", line: "return tonumber(redis.call('ZADD', errors, 1, id))"},
	{name: "causes have no end", few: true, mark: "too many", line: "if id == 'other' then"},
	{name: "what is wanted again counts as a failure", store: func(s store.Pool) queue {
		return altered{s, func(r *store.Record) { r.Again = false }}
	}},

	{name: "a cancelled attempt counts", slow: true, steers: true, store: func(s store.Pool) queue { return countingCancels{s} }},
	{name: "the late result of a cancelled attempt is applied", slow: true, steers: true, store: func(s store.Pool) queue { return &forgiving{Pool: s} }},
	{name: "a hold takes back what was started since", steers: true, slow: true, store: func(s store.Pool) queue { return cancelsAnything{s} }},
	{name: "a hold forgets what runs", steers: true, slow: true, store: func(s store.Pool) queue { return halfHearted{s} }},

	{name: "an import loses the counters", slow: true, moves: true, store: func(s store.Pool) queue { return losing{s} }},
	{name: "an import enables a model", slow: true, moves: true, store: func(s store.Pool) queue { return enabling{s} }},
	{name: "an import loses the history", moves: true, mark: "past"},
	{name: "an import keeps what was told before", moves: true, mark: "past before"},
	{name: "an import is written over what has changed", moves: true, slow: true, mark: "fence",
		line: "elseif refused[uid] or not attempts and ((is[1] or '') ~= rev or (is[2] or '') ~= attempt_uid) or held and kind.fenced then"},

	{name: "what is urgent waits behind gates", slow: true, steers: true, store: func(s store.Pool) queue { return calmer{s} }},
}

// repeating lets a dispatcher look at what is stale once more.
type repeating struct{ store.Pool }

func (s repeating) ReadDue(ctx context.Context, asked store.DueRequest) (store.Due, error) {
	due, err := s.Store.ReadDue(ctx, asked)
	if err != nil {
		return due, err
	}
	stale, err := s.Report().LongestStale(ctx, 0, 1)
	for _, one := range stale {
		due.Ages = append(due.Ages, one.UID)
	}
	return due, err
}

func (s repeating) Load(ctx context.Context, uids []string) (map[string]*store.Record, error) {
	records, err := s.Store.Load(ctx, uids)
	for _, record := range records {
		if record.Freshness == model.FreshnessStale {
			record.Freshness = model.FreshnessLate
		}
	}
	return records, err
}

// sparing looks away when some models grow older.
type sparing struct {
	store.Pool
	spares func(*store.Record) bool
}

func (s sparing) ReadDue(ctx context.Context, asked store.DueRequest) (store.Due, error) {
	due, err := s.Store.ReadDue(ctx, asked)
	if err != nil || len(due.Ages) == 0 {
		return due, err
	}
	records, err := s.Load(ctx, due.Ages)
	due.Ages = slices.DeleteFunc(due.Ages, func(uid string) bool { return err == nil && s.spares(records[uid]) })
	return due, err
}
