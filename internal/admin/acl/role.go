package acl

import (
	"slices"

	"github.com/refreshd/refreshd/internal/store"
)

func opening(k scope) grant { return allow("hget", reading(k.queue.Settings)) }

// raising lists the commands of the first dispatcher or poller of a queue.
func raising(k scope) []grant {
	return []grant{allow("watch", reading(k.queue.Settings)), allow("hset", writing(k.queue.Settings))}
}

// zoning lists commands of each living dispatcher and poller: it notes its zone data, and begins to plan anew by newer data.
func zoning(k scope) []grant {
	return []grant{
		allow("watch hgetall hset hdel", both(k.Zones)), allow("zrangebyscore zrange", reading(k.Dispatchers, k.Pollers)),
		allow("del hset", writing(k.Bulk(store.ZonesID+all))), allow("zadd", writing(k.Blockers, k.Bulks)), allow("zrange", reading(k.Blockers)),
	}
}

// models lists the reads of models by Go code, beside the scripts.
func models(k scope) []grant {
	return []grant{
		allow("hgetall", reading(k.Model(all))),
		allow("get", reading(k.Payload(all))),
		allow("hmget", reading(k.Policies, k.QueueCircuit)),
		allow("llen", reading(k.Input)),
	}
}

// Commands of txn.lua on ids of commands and on replies, for roles that handle the control list.
var (
	commandIDs = []string{"zscore", "zadd", "zcount", "zremrangebyrank"}
	replying   = []string{"rpush", "ltrim", "expire"}
)

// numbers lists the reads of report.Stats for a monitor.
func numbers(k scope) []grant {
	return []grant{
		allow("zcard zcount zrange", reading(k.ScoreSets()...), reading(k.ParkedBy(all), k.Blockers, k.Errors, k.Dispatchers, k.Pollers, k.Workers)),
		allow("llen", reading(k.Input, k.Output, k.Control, k.Claimed(all), k.Rejected)),
		allow("xlen", reading(k.Journal)),
		allow("xlen xrange xinfo|groups xpending", reading(k.Outbox)),
		allow("hkeys", reading(k.Deliveries)),
		allow("llen lindex", reading(k.Notices(all))),
		allow("hgetall", reading(k.Stats)),
	}
}

func dispatcher(k scope) part {
	return part{
		runs: []run{{"read-due.lua", nobody}, {"txn.lua", nobody}, {"measure-circuit.lua", nobody}, {"note-head-sample.lua", nobody}, {"move-blockers.lua", nobody}, {"trim-outbox.lua", nobody}, {"move-entries.lua", all}},
		never: []grant{ // it brings no payload, changes no entry and answers no message
			{[]string{"set"}, []string{k.Payload(all)}},
			{[]string{"lset"}, []string{k.Input}},
			{[]string{"lrange", "ltrim", "lrem"}, []string{k.Claimed(nobody)}},
			{[]string{"type", "llen", "lmove", "lrem"}, []string{k.Claimed(all)}}, // it requeues attempts, and adopts no message
			{[]string{"zadd", "zrem"}, []string{k.Pollers}},
			{[]string{"lrange", "lrem"}, []string{k.ClaimedCommands}},
			{[]string{"rpush", "ltrim"}, []string{k.Rejected, k.Logs}},
			{[]string{"hsetnx"}, []string{k.Policies}}, // and changes no definition
			{[]string{"hset"}, []string{k.PolicyUses}},
			{commandIDs, []string{k.Commands}}, // nor carries out a command
			{replying, []string{k.Reply(all)}},
		},
		direct: append(slices.Concat(models(k), numbers(k), raising(k), zoning(k)), opening(k),
			allow("zrem", writing(k.Dispatchers)),
			allow("hdel", writing(k.Heard)),
			allow("blpop", both(k.Wake)),
			allow("lrange", reading(k.Input, k.Front, k.Taken(all))),
			allow("hmget", reading(k.Model(all))),
			allow("zrangebyscore", reading(k.Workers)),
			allow("zrange", reading(k.ParkedBy(all))),
			allow("zcard zrangebyscore", reading(k.Limit(all))),
			allow("get", reading(k.Rate(all))),
			allow("hmget", reading(k.Circuit(all))),
			// It forgets limits that have ended and models that are broken, and thins out the fronts.
			allow("watch", reading(k.Limits, k.Model(all), k.Front)),
			allow("hdel", writing(k.Limits)),
			allow("hgetall hsetnx hset hdel", both(k.Hours)),
			allow("zrem", writing(k.StaleAt, k.ParkedBy(all), k.Limit(all))),
		),
	}
}

func poller(k scope) part {
	p := part{
		runs: []run{{"claim-messages.lua", all}, {"txn.lua", all}, {"move-entries.lua", all}, {"move-bulk.lua", nobody}, {"requeue-rejected.lua", nobody}, {"change-queue.lua", nobody}},
		never: []grant{
			{[]string{"lmove"}, []string{k.Input}}, // it has no worker pool
			{[]string{"zadd", "zrem", "zscore"}, []string{k.Workers}},
			{[]string{"llen", "lmove", "lrem"}, []string{k.Taken(all)}},
			// Of the operators' settings, commands change only holds, and they begin no bulk.
			{[]string{"hset", "hdel", "hincrby"}, []string{k.Limits, k.Calendars, k.QueueCircuit, k.Orders}},
			{[]string{"hset", "hincrby"}, []string{k.Policies}},
			{[]string{"hdel"}, []string{k.Holds}},
			{[]string{"zadd"}, []string{k.Bulks}},
			{[]string{"zrem"}, []string{k.BulksEnded}},
			{[]string{"del"}, []string{k.Bulk(all)}},
		},
		direct: append(slices.Concat(models(k), numbers(k), raising(k), zoning(k)), opening(k),
			allow("blmove", both(k.Output)),
			allow("blmove", both(k.Control)),
			allow("zrangebyscore", reading(k.Pollers)),
			allow("hkeys", reading(k.Policies)),
			// It walks over the models of a bulk.
			allow("hgetall", reading(k.Bulk(all))),
			allow("zrange", reading(k.Bulks)),
			allow("zcard zscan", reading(k.StatusSets("")...)),
			allow("scard sscan", reading(k.Label(all))),
			allow("lrange", reading(k.Input, k.Rejected)),
			allow("lrange", reading(k.History(all))), // guards need it to doubt a success
			// It carries out the commands about the queue.
			allow("hget", reading(k.Holds)),
			allow("zscore", reading(k.Commands)),
			allow("watch get", reading(k.Rate(all))),
			// It starts models in places of keys that are given back.
			allow("hget", reading(k.Heard)),
			allow("hgetall", reading(k.Holds, k.Limits, k.Calendars)),
			allow("zcard zrangebyscore", reading(k.Limit(all))),
			allow("hmget", reading(k.Circuit(all))),
			allow("zscore", reading(k.Running)),
			allow("xtrim", writing(k.Deeds)),
		),
	}
	if k.several {
		p.runs = append(p.runs, run{"receive-commands.lua", nobody})
	}
	return p
}

func worker(k scope) part {
	return part{
		runs: []run{{"take-attempts.lua", all}, {"answer-attempts.lua", all}, {"move-entries.lua", all}},
		never: []grant{ // it claims no message
			{[]string{"zadd", "zrem", "zscore"}, []string{k.Pollers}},
			{[]string{"llen", "lmove", "lrem"}, []string{k.Claimed(all)}},
			{[]string{"hset"}, []string{k.Heard}},
		},
		direct: []grant{
			allow("blmove", both(k.Input)),
			allow("lrange", reading(k.Taken(all))),
			allow("hmget hget", reading(k.Model(all))), // the clients read one field at a time
			allow("hmget", reading(k.Heard)),           // who leaves judges deadlines as a dispatcher does
			allow("lpop blpop", both(k.Reply(all))),    // for the verdict before it publishes
			opening(k),
		},
	}
}

func notifier(k scope) part {
	return part{
		runs: []run{{"route-notices.lua", nobody}, {"settle-notices.lua", nobody}},
		direct: append(models(k), opening(k),
			allow("xreadgroup xautoclaim xgroup|create", both(k.Outbox)),
			allow("zrangebyscore", reading(k.Recipients(all))),
			allow("lrange", reading(k.Notices(all))),
			allow("hget", reading(k.Deliveries)),
			allow("rpush ltrim", writing(k.Told(all))),
		),
	}
}

// subscriber reads the outbox with its own group, or pops a list that the notifier pushes to.
func subscriber(k scope) part {
	return part{direct: []grant{
		opening(k),
		allow("xreadgroup xack xautoclaim xclaim xpending xgroup|create xgroup|createconsumer xgroup|delconsumer", both(k.Outbox)),
		allow("lpop blpop", both(k.Told(all))),
	}}
}

func foreignWorker(k scope) part {
	return part{direct: []grant{
		opening(k), // to read how messages call things
		allow("lpop blpop", both(k.Input)),
		allow("rpush", writing(k.Output)),
		allow("lpop blpop", both(k.Reply(all))), // for the verdict before it publishes
		allow("hget", reading(k.Model(all))),    // to ask whether its attempt still counts
	}}
}

func application(k scope) part {
	return part{direct: []grant{
		opening(k),
		allow("rpush", writing(k.Control)),
		allow("lpop blpop lrange", both(k.Reply(all))), // what became of its commands
		// Its pages show models, but no payloads.
		allow("hgetall hmget hget", reading(k.Model(all))),
		allow("lrange", reading(k.History(all))),
		allow("scard sscan sismember smismember smembers sinter", reading(k.Label(all))),
		allow("zcard zscan zscore zmscore zrange", reading(k.StatusSets("")...)),
		allow("zrange", reading(k.Pollers)), // whether anybody answers
	}}
}

// viewer may read everything of its queue, and change nothing. It may run no script: Redis takes every key of a script for one that is
// written.
func viewer(k scope) part {
	many := reading(k.Model(all), k.Payload(all), k.History(all), k.Claimed(all), k.Taken(all), k.Reply(all), k.Leader, k.Notices(all), k.Told(all))
	lists := reading(k.Input, k.Output, k.Control, k.Rejected, k.Logs, k.Undelivered, k.Wake, k.Front)
	sets := reading(append(k.ScoreSets(), k.Dispatchers, k.Pollers, k.Workers, k.Commands, k.Bulks, k.BulksEnded, k.Errors, k.PastErrors, k.Recipients(all))...)
	hashes := reading(k.Policies, k.PolicyUses, k.Stats, k.Hours, k.Forwarded, k.Bulk(all), k.Error(all), k.Deliveries, k.Summary(all), k.Orders, k.Zones, k.Heard)
	streams := reading(k.Journal, k.Outbox, k.Deeds)
	settings := []string{k.queue.Settings}
	if k.several {
		settings = append(settings, k.Settings) // to open one part alone
	}
	return part{direct: []grant{
		allow("type exists", many, lists, sets, hashes, streams),
		allow("hgetall hmget hget", reading(k.Model(all)), hashes),
		allow("hkeys hscan hexists", hashes),
		allow("get", reading(k.Payload(all), k.Leader)),
		allow("llen lrange lindex", reading(k.History(all), k.Claimed(all), k.Taken(all), k.Reply(all), k.Notices(all), k.Told(all)), lists),
		allow("zscore zmscore zrank zcard zcount zrange zrevrange zrangebyscore zscan", sets),
		allow("xlen xrange xrevrange xread", streams),
		allow("xinfo|groups xpending", reading(k.Outbox)),
		allow("ttl", reading(k.Error(all))),
		allow("type exists scard sscan sismember", reading(k.Label(all))),
		// Blockers, and the models that wait for them.
		allow("type hget hgetall hscan hexists", reading(k.Holds, k.Limits, k.Calendars)),
		allow("type zcard zscore zmscore zrank zrange zscan", reading(k.Blockers, k.ParkedBy(all))),
		allow("type zcard zscore zmscore zscan zrangebyscore", reading(k.Limit(all))),
		allow("type get", reading(k.Rate(all))),
		allow("type hget hmget hgetall", reading(k.Circuit(all))),
		allow("hget", reading(settings...)),
	}}
}

// operator may do all that the command line does but run a daemon: it starts no attempt by itself, and takes none. To requeue rejected
// messages it may push to the lists that they came from.
func operator(k scope) part {
	return part{
		runs: []run{{"txn.lua", nobody}, {"move-entries.lua", all}, {"requeue-rejected.lua", nobody}, {"move-bulk.lua", nobody}, {"turn-circuit.lua", nobody}, {"change-queue.lua", nobody}, {"requeue-notices.lua", nobody}},
		never: []grant{
			{[]string{"rpush"}, []string{k.Input, k.Rejected, k.Logs}},
			{[]string{"ltrim"}, []string{k.Rejected, k.Logs}},
			{[]string{"lrange", "ltrim", "lrem"}, []string{k.Claimed(nobody)}},
			{[]string{"llen", "lmove", "lrem"}, []string{k.Claimed(all)}}, // nor adopts a message
			{[]string{"zadd", "zrem", "zscore"}, []string{k.Pollers}},
			{[]string{"hset", "hdel"}, []string{k.Heard}},
			{[]string{"lrange", "lrem"}, []string{k.ClaimedCommands}},
			{[]string{"hdel"}, []string{k.Holds}},     // a dispatcher forgets them
			{[]string{"hset"}, []string{k.Forwarded}}, // its commands have no order
			{commandIDs, []string{k.Commands}},        // nor ids, and it sees what becomes of them
			{replying, []string{k.Reply(all)}},
		},
		direct: append(viewer(k).direct,
			// Repairs of the doctor: lists without an owner, unused policies, probes and counts of failures.
			allow("ltrim", writing(k.Wake)),
			allow("watch", reading(k.Rate(all), k.PolicyUses, k.Circuit(all), k.Model(all), k.Errors, k.Error(all))),
			allow("hdel", writing(k.PolicyUses)),
			allow("zadd", writing(k.Errors)),
			allow("zadd", writing(k.Dispatchers, k.Pollers, k.Workers)),
			allow("xtrim xadd", writing(k.Deeds)),
			// Before it creates a queue, it checks that nobody uses it with one part, with braces or without.
			allow("hsetnx hset", writing(k.queue.Settings)),
			allow("watch", reading(k.queue.Settings)),
			allow("exists", reading(k.traces()...)),
		),
	}
}
