package simulation

import (
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// fleetBugs are those of freshness, of causes of failures, of what a hold takes back, and of what is moved.
var fleetBugs = []bug{
	{name: "stale is told twice", ages: true, store: func(s store.Pool) queue { return repeating{liar{Pool: s, record: staleIsLate}} }},
	{name: "an owner is told stale twice", ages: true, mark: "outbox",
		line: "notices[#notices + 1] = item.notice if item.event == 'became_stale' then notices[#notices + 1] = item.notice end"},
	{name: "an owner is not told fresh beside recovered", slow: true, ages: true, mark: "second"},
	{name: "a disabled model never goes stale", ages: true, store: func(s store.Pool) queue {
		return sparing{s, func(r *store.Record) bool { return r.Disabled }}
	}},
	{name: "a parked model never goes stale", slow: true, ages: true, steers: true, store: func(s store.Pool) queue { return sparing{s, func(r *store.Record) bool { return r.Parked() }} }},
	{name: "nobody looks at ages", ages: true, store: func(s store.Pool) queue {
		return sparing{s, func(*store.Record) bool { return true }}
	}},
	{name: "an age is not listed", ages: true, mark: "index", line: "if word ~= 'stale_at' or item[word] == '' then scores[uid] = item[word] or '' end"},
	{name: "what is stale grows older", ages: true, mark: "index", line: "if word ~= 'stale_at' or item[word] ~= '' then scores[uid] = item[word] or '' end"},
	{name: "what has succeeded is listed as never", slow: true, ages: true, lie: liar{record: func(r *store.Record) {
		if r.Freshness == model.FreshnessNever {
			r.Freshness = model.Fresh
		}
	}}},
	{name: "what is late is not listed", ages: true, mark: "index", line: "if word ~= 'late' or item[word] == '' then scores[uid] = item[word] or '' end"},
	{name: "what is fresh again is listed as late", ages: true, mark: "index", line: "if word ~= 'late' or item[word] ~= '' then scores[uid] = item[word] or '' end"},
	{name: "what is stale is not listed", ages: true, mark: "index", line: "if word ~= 'stale' or item[word] == '' then scores[uid] = item[word] or '' end"},
	{name: "what is fresh again is listed as stale", ages: true, mark: "index", line: "if word ~= 'stale' or item[word] ~= '' then scores[uid] = item[word] or '' end"},

	{name: "a removed model is failing for ever", few: true, mark: "sort",
		line: "if item.fingerprint or item.recovers and not item.remove then write_fingerprint(item) end"},
	{name: "a cause is never left", few: true, mark: "leave the error", line: "if tonumber(redis.call('ZINCRBY', errors, 0, id)) > 0 then"},
	{name: "a cause counts one model", slow: true, few: true, mark: "join the error", line: "return tonumber(redis.call('ZADD', errors, 1, id))"},
	{name: "causes have no end", few: true, mark: "too many", line: "if id == 'other' then"},
	{name: "what is wanted again counts as a failure", lie: liar{record: func(r *store.Record) { r.Again = false }}},

	{name: "a cancelled attempt counts", slow: true, steers: true, lie: liar{read: func(r *store.Record, commands []*model.Command) {
		if len(commands) > 0 && commands[0].Type == model.CommandType(model.BulkCancel) {
			r.AttemptNo++
		}
	}}},
	{name: "the late result of a cancelled attempt is applied", slow: true, steers: true, store: hearsay(believesAnyResult)},
	{name: "a hold takes back what was started since", steers: true, slow: true, lie: liar{bulk: func(b *store.Bulk) {
		if b.Action == model.BulkCancel {
			b.Ticket = 1 << 40
		}
	}}},
	{name: "a hold forgets what runs", steers: true, slow: true, store: func(s store.Pool) queue { return halfHearted{s} }},

	{name: "an import loses the counters", slow: true, moves: true, lie: liar{export: func(r *store.Record) { r.TotalRetries, r.SuccessfulRetries, r.RetriedCycles = 0, 0, 0 }}},
	{name: "an import enables a model", slow: true, moves: true, lie: liar{export: func(r *store.Record) {
		if r.Disabled {
			r.Disabled, r.DisabledAt, r.DisabledBy, r.DisabledReason, r.DisabledWho, r.RefreshAt = false, time.Time{}, "", "", "", start
		}
	}}},
	{name: "an import loses the history", moves: true, mark: "past"},
	{name: "an import keeps what was told before", moves: true, mark: "past before"},
	{name: "an import is written over what has changed", moves: true, slow: true, mark: "fence",
		line: "if refused[item.uid] or not item.attempts and differs or held and item.fenced then"},

	{name: "what is urgent waits behind gates", slow: true, steers: true, lie: liar{due: func(d *store.Due) { d.Due, d.Urgent = append(d.Due, d.Urgent...), nil }}},
}
