package acl

// viewer may read everything of its queue, and change nothing. It may run no script: Redis takes every key of a script for one that is
// written.
func viewer(k scope) part {
	many := reading(k.Model(all), k.Payload(all), k.History(all), k.Claimed(all), k.Taken(all), k.Reply(all), k.Leader, k.Notices(all), k.Told(all))
	lists := reading(k.Input, k.Output, k.Control, k.Rejected, k.Undelivered, k.Wake, k.Front)
	sets := reading(k.Due, k.Urgent, k.Running, k.StaleAt, k.Late, k.Stale, k.Dispatchers, k.Pollers, k.Workers, k.Commands, k.Bulks, k.BulksEnded, k.Failing, k.Disabled, k.Parked, k.Errors, k.PastErrors, k.Recipients(all))
	hashes := reading(k.Policies, k.PolicyUses, k.Stats, k.Forwarded, k.Bulk(all), k.Error(all), k.Deliveries)
	streams := reading(k.Journal, k.Outbox)
	settings := []string{k.Settings}
	if k.several {
		settings = append(settings, k.Keys.Settings) // to open one part alone
	}
	return part{direct: []grant{
		allow("type exists", many, lists, sets, hashes, streams),
		allow("hgetall hmget hget", reading(k.Model(all)), hashes),
		allow("hkeys hscan hexists", hashes),
		allow("get", reading(k.Payload(all), k.Leader)),
		allow("llen lrange lindex", reading(k.History(all), k.Claimed(all), k.Taken(all), k.Reply(all), k.Notices(all), k.Told(all)), lists),
		allow("zscore zrank zcard zcount zrange zrevrange zrangebyscore zscan", sets),
		allow("xlen xrange xrevrange xread", streams),
		allow("xinfo|groups xpending", reading(k.Outbox)),
		allow("ttl", reading(k.Error(all))),
		allow("type exists scard sscan sismember", reading(k.Label(all))),
		// What keeps models from starting, and what waits for it.
		allow("type hget hgetall hscan hexists", reading(k.Holds, k.Limits, k.Calendars)),
		allow("type zcard zscore zrank zrange zscan", reading(k.Gates, k.ParkedBy(all))),
		allow("type zcard zscore zscan zrangebyscore", reading(k.Limit(all))),
		allow("type get", reading(k.Rate(all))),
		allow("type hget hmget hgetall", reading(k.Circuit(all), k.FormerCircuit)),
		allow("hget", reading(settings...)),
	}}
}

// operator may do all that the command line does but run a daemon: it starts no attempt by itself, and takes none. To requeue rejected
// messages it may push to the lists that they came from.
func operator(k scope) part {
	return part{
		runs: []run{{"commit.lua", nobody}, {"requeue-attempts.lua", all}, {"forget-policy.lua", nobody}, {"requeue-rejected.lua", nobody}, {"move-bulk.lua", nobody}, {"recount-error.lua", nobody}, {"drop-probe.lua", nobody}, {"turn-circuit.lua", nobody}, {"change-queue.lua", nobody}, {"requeue-notices.lua", nobody}},
		never: []grant{
			{[]string{"rpush"}, []string{k.Input, k.Rejected}},
			{[]string{"ltrim"}, []string{k.Rejected}},
			{[]string{"lrange", "ltrim", "lrem"}, []string{k.Claimed(nobody)}},
			{[]string{"lrange", "lrem"}, []string{k.ClaimedCommands}},
			{[]string{"hdel"}, []string{k.Holds}},     // a dispatcher forgets them
			{[]string{"hset"}, []string{k.Forwarded}}, // its commands have no order
			{commandIDs, []string{k.Commands}},        // nor ids, and it sees what becomes of them
			{replying, []string{k.Reply(all)}},
		},
		direct: append(viewer(k).direct,
			// What doctor --repair does with lists that nobody owns.
			allow("ltrim", writing(k.Wake)),
			allow("zadd", writing(k.Dispatchers, k.Pollers, k.Workers)),
			// Before it creates a queue, it looks whether somebody uses it already as one of one part, with braces or without.
			allow("hsetnx hset", writing(k.Settings)),
			allow("watch", reading(k.Settings)),
			allow("exists", reading(k.traces()...)),
		),
	}
}
