package simulation

import (
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// steeredBugs are those of gates, keys, indexes and bulks.
var steeredBugs = []bug{
	{name: "an end does not free its key", steers: true, mark: "free the key"},
	{name: "a slot is leaked by a kill", steers: true, mark: "take the key", line: "redis.call('ZADD', KEYS[limit], '+inf', item.uid)"},
	{name: "a start takes one of two keys", slow: true, steers: true, mark: "take the key",
		line: "if i == 1 then redis.call('ZADD', KEYS[limit], item.running, item.uid) end"},
	{name: "a full key lets one more through", steers: true, keyed: singlePolicy, mark: "full key", lie: knowsNothingRunning},
	{name: "what is past its deadline holds no slot", steers: true, keyed: singlePolicy, mark: "full key",
		line: "limited = limited or max ~= '' and redis.call('ZCOUNT', KEYS[limit], now, '+inf') >= tonumber(max)", lie: knowsNothingRunning},
	{name: "a slot is given away twice", steers: true, keyed: ratedPolicy, mark: "slot"},
	{name: "what is late for its slot starts at once", steers: true, keyed: ratedPolicy, slow: true, store: bursting},
	{name: "who is told to wait loses his place", steers: true, keyed: ratedPolicy, slow: true, first: 600, mark: "close the key",
		line: "redis.call('SET', KEYS[place], string.format('%.0f %.0f', till, till), 'PX', lasts)"},
	{name: "a start takes no slot", steers: true, mark: "take the slot"},
	{name: "a key that has had enough stays open", steers: true, keyed: ratedPolicy, slow: true, mark: "close the key"},
	{name: "what goes on holds its key no longer", slow: true, steers: true, mark: "extend"},

	{name: "a start ignores the changes of holds", steers: true, mark: "hold"},
	{name: "what is held counts towards giving up", steers: true, keyed: tiredPolicy, lie: liar{record: func(r *store.Record) {
		if r.Parked() {
			r.ParkedSince = model.Never
		}
	}}},
	{name: "a parked model is forgotten", steers: true, mark: "look"},
	{name: "a gate is forgotten with its models", slow: true, steers: true, mark: "models wait", line: "if true then"},
	{name: "a gate that was opened meanwhile is closed", steers: true, deeds: holding, slow: true, mark: "opened meanwhile", line: "if true then"},
	{name: "what has left a gate stands there still", steers: true, mark: "leave the gate"},
	{name: "what is parked no more stands there still", slow: true, steers: true, mark: "index", line: "if word ~= 'parked' or item[word] ~= '' then scores[uid] = item[word] or '' end"},

	{name: "a probe that never ends", slow: true, steers: true, keyed: triedPolicy, mark: "probe anew"},
	{name: "anybody closes a circuit", slow: true, steers: true, keyed: triedPolicy, mark: "probe alone", line: "if false then"},
	{name: "a circuit never opens", steers: true, keyed: triedPolicy, mark: "open"},
	{name: "people are not told of an open circuit", steers: true, keyed: triedPolicy, mark: "listed"},
	{name: "an open circuit is forgotten that no model waits for", slow: true, steers: true, keyed: triedPolicy, mark: "models wait",
		line: "if redis.call('ZCARD', KEYS[key]) == 0 then"},
	{name: "a circuit never closes", steers: true, keyed: triedPolicy, mark: "close"},

	{name: "what fails is not listed", mark: "index", line: "if word ~= 'failing' or item[word] == '' then scores[uid] = item[word] or '' end"},
	{name: "what has succeeded is listed as failing", mark: "index", line: "if word ~= 'failing' or item[word] ~= '' then scores[uid] = item[word] or '' end"},
	{name: "what is enabled is listed as disabled", mark: "index", line: "if word ~= 'disabled' or item[word] ~= '' then scores[uid] = item[word] or '' end"},
	{name: "a label is not listed", steers: true, mark: "label"},
	{name: "a label stays", steers: true, mark: "unlabel"},

	{name: "a late request undoes what was set since", steers: true, deeds: holding, mark: "changed since", line: "if false then"},
	{name: "a command is carried out behind a later one", steers: true, deeds: sending, slow: true, mark: "in order", line: "if false then"},
	{name: "a command is carried out twice", steers: true, deeds: sending, slow: true, file: "change-queue.lua", mark: "once", line: "if false then"},
	{name: "a change of what is set is not counted", steers: true, deeds: holding, mark: "change"},
	{name: "a bulk that steers starts twice after a kill", steers: true, slow: true, lie: liar{bulk: func(b *store.Bulk) { b.Since, b.Ticket = model.Never, 1<<40 }}},
	{name: "two pollers move a bulk", steers: true, deeds: walking, slow: true, mark: "another step", line: "if is[1] ~= since or is[3] then"},
	{name: "a bulk is never over", steers: true, slow: true, file: "move-bulk.lua", mark: "end"},
}
