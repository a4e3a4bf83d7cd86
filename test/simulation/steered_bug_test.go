package simulation

import (
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// steeredBugs are those of gates, keys, indexes and bulks.
var steeredBugs = []bug{
	{name: "an end does not free its key", steers: true, mark: "free the key"},
	{name: "a slot is leaked by a kill", steers: true, mark: "take the key", line: "redis.call('ZADD', KEYS[limit], '+inf', item.uid)"},
	{name: "a start takes one of two keys", steers: true, mark: "take the key",
		line: "if i == 1 then redis.call('ZADD', KEYS[limit], item.running, item.uid) end"},
	{name: "a full key lets one more through", steers: true, keyed: singlePolicy, mark: "full key", lie: knowsNothingRunning},
	{name: "what is past its deadline holds no slot", steers: true, keyed: singlePolicy, mark: "full key",
		line: "limited = limited or max ~= '' and redis.call('ZCOUNT', KEYS[limit], now, '+inf') >= tonumber(max)", lie: knowsNothingRunning},
	{name: "a slot is given away twice", steers: true, keyed: ratedPolicy, mark: "slot"},
	{name: "what is late for its slot starts at once", steers: true, keyed: ratedPolicy, store: bursting},
	{name: "who is told to wait loses his place", first: 751, steers: true, keyed: ratedPolicy, mark: "close the key",
		line: "redis.call('SET', KEYS[place], string.format('%.0f %.0f', till, till), 'PX', lasts)"},
	{name: "a start takes no slot", steers: true, mark: "take the slot"},
	{name: "a key that has had enough stays open", first: 29, steers: true, keyed: ratedPolicy, mark: "close the key"},
	{name: "what goes on holds its key no longer", steers: true, mark: "extend"},

	{name: "a start ignores the changes of holds", first: 12, steers: true, mark: "hold"},
	{name: "what is held counts towards giving up", steers: true, keyed: tiredPolicy, lie: liar{record: func(r *store.Record) {
		if r.Parked() {
			r.ParkedSince = model.Never
		}
	}}},
	{name: "a parked model is forgotten", steers: true, mark: "look"},
	{name: "a gate is forgotten with its models", steers: true, mark: "models wait", line: "if true then"},
	{name: "a gate that was opened meanwhile is closed", first: 58, steers: true, deeds: holding, mark: "opened meanwhile", line: "if true then"},
	{name: "what has left a gate stands there still", steers: true, mark: "leave the gate"},
	{name: "what is parked no more stands there still", steers: true, mark: "index", line: "if word ~= 'parked' or item[word] ~= '' then scores[uid] = item[word] or '' end"},

	{name: "a probe that never ends", first: 25, steers: true, keyed: triedPolicy, mark: "probe anew"},
	{name: "anybody closes a circuit", steers: true, keyed: triedPolicy, mark: "probe alone", line: "if false then"},
	{name: "a circuit never opens", steers: true, keyed: triedPolicy, mark: "circuit opens"},
	{name: "people are not told of an open circuit", steers: true, keyed: triedPolicy, mark: "listed"},
	{name: "an open circuit is forgotten that no model waits for", steers: true, keyed: triedPolicy, mark: "models wait",
		line: "if redis.call('ZCARD', KEYS[key]) == 0 then"},
	{name: "a circuit never closes", steers: true, keyed: triedPolicy, mark: "circuit closes"},

	{name: "what fails is not listed", mark: "index", line: "if word ~= 'failing' or item[word] == '' then scores[uid] = item[word] or '' end"},
	{name: "what has succeeded is listed as failing", mark: "index", line: "if word ~= 'failing' or item[word] ~= '' then scores[uid] = item[word] or '' end"},
	{name: "what is enabled is listed as disabled", mark: "index", line: "if word ~= 'disabled' or item[word] ~= '' then scores[uid] = item[word] or '' end"},
	{name: "a label is not listed", steers: true, mark: "label"},
	{name: "a label stays", steers: true, mark: "unlabel"},

	{name: "a late request undoes what was set since", first: 18, steers: true, deeds: holding, mark: "changed since", line: "if false then"},
	{name: "a command is carried out behind a later one", first: 48, steers: true, deeds: sending, mark: "in order", line: "if false then"},
	{name: "a command is carried out twice", steers: true, deeds: sending, file: "change-queue.lua", mark: "once", line: "if false then"},
	{name: "a change of what is set is not counted", steers: true, deeds: holding, mark: "change"},
	{name: "a bulk that steers starts twice after a kill", steers: true, lie: liar{bulk: func(b *store.Bulk) { b.Since, b.Ticket = model.Never, 1<<40 }}},
	{name: "two pollers move a bulk", first: 32, steers: true, deeds: walking, mark: "another step", line: "if is[1] ~= since or is[3] then"},
	{name: "a bulk is never over", steers: true, file: "move-bulk.lua", mark: "end"},
}

// fleetBugs are those of freshness, of causes of failures, of what a hold takes back, and of what is moved.
var fleetBugs = []bug{
	{name: "stale is told twice", ages: true, store: func(s store.Pool) queue {
		return repeating{liar{Pool: s, record: func(r *store.Record) {
			if r.Freshness == model.FreshnessStale {
				r.Freshness = model.FreshnessLate
			}
		}}}
	}},
	{name: "an owner is told stale twice", ages: true, mark: "outbox",
		line: "notices[#notices + 1] = item.notice if item.event == 'became_stale' then notices[#notices + 1] = item.notice end"},
	{name: "an owner is not told fresh beside recovered", first: 71, ages: true, mark: "second"},
	{name: "a disabled model never goes stale", ages: true, store: func(s store.Pool) queue {
		return sparing{s, func(r *store.Record) bool { return r.Disabled }}
	}},
	{name: "a parked model never goes stale", ages: true, steers: true, store: func(s store.Pool) queue { return sparing{s, func(r *store.Record) bool { return r.Parked() }} }},
	{name: "nobody looks at ages", ages: true, store: func(s store.Pool) queue {
		return sparing{s, func(*store.Record) bool { return true }}
	}},
	{name: "an age is not listed", ages: true, mark: "index", line: "if word ~= 'stale_at' or item[word] == '' then scores[uid] = item[word] or '' end"},
	{name: "what is stale grows older", ages: true, mark: "index", line: "if word ~= 'stale_at' or item[word] ~= '' then scores[uid] = item[word] or '' end"},
	{name: "what has succeeded is listed as never", ages: true, lie: liar{record: func(r *store.Record) {
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
	{name: "a cause counts one model", few: true, mark: "join the error", line: "return tonumber(redis.call('ZADD', errors, 1, id))"},
	{name: "causes have no end", few: true, mark: "too many", line: "if id == 'other' then"},
	{name: "what is wanted again counts as a failure", lie: liar{record: func(r *store.Record) { r.Again = false }}},

	{name: "a cancelled attempt counts", steers: true, lie: liar{read: func(r *store.Record, commands []*model.Command) {
		if len(commands) > 0 && commands[0].Type == model.CommandType(model.BulkCancel) {
			r.AttemptNo++
		}
	}}},
	{name: "the late result of a cancelled attempt is applied", steers: true, store: hearsay(believesAnyResult)},
	{name: "a hold takes back what was started since", first: 31, steers: true, lie: liar{bulk: func(b *store.Bulk) {
		if b.Action == model.BulkCancel {
			b.Ticket = 1 << 40
		}
	}}},
	{name: "a hold forgets what runs", first: 50, steers: true, store: func(s store.Pool) queue { return halfHearted{s} }},

	{name: "an import loses the counters", first: 21, moves: true, lie: liar{export: func(r *store.Record) { r.TotalRetries, r.SuccessfulRetries, r.RetriedCycles = 0, 0, 0 }}},
	{name: "an import enables a model", moves: true, lie: liar{export: func(r *store.Record) {
		if r.Disabled {
			r.Disabled, r.DisabledAt, r.DisabledBy, r.DisabledReason, r.DisabledWho, r.RefreshAt = false, time.Time{}, "", "", "", start
		}
	}}},
	{name: "an import loses the history", moves: true, mark: "past"},
	{name: "an import keeps what was told before", moves: true, mark: "past before"},
	{name: "an import is written over what has changed", first: 38, moves: true, mark: "fence",
		line: "if refused[item.uid] or not item.attempts and differs or held and item.fenced then"},

	{name: "what is urgent waits behind gates", steers: true, lie: liar{due: func(d *store.Due) { d.Due, d.Urgent = append(d.Due, d.Urgent...), nil }}},
}
