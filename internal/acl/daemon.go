package acl

import "github.com/refreshd/refreshd/scripts"

const eval = "evalsha eval"

// applying is what apply-transitions.lua does for whoever decides about models, but for what only some of them do: to start attempts, to
// store payloads, to answer messages.
func applying(k scripts.Keys) []grant {
	return []grant{
		allow("type", reading(k.Due(), k.Running(), k.Input(), k.Journal(), k.Outbox(), k.Stats(), k.Wake())),
		allow("zadd zrem", writing(k.Due(), k.Running())),
		allow("hgetall hmget hset hdel", both(k.Model(all))),
		allow("del", writing(k.Model(all), k.Payload(all), k.History(all))),
		allow("get", reading(k.Payload(all))),
		allow("lpush ltrim", writing(k.History(all))),
		allow("llen lrange lpos lrem", both(k.Input())),
		allow("xadd", writing(k.Journal(), k.Outbox())),
		allow("hincrby", both(k.Stats())),
		allow("llen rpush", both(k.Wake())),
		allow("hmget", reading(k.Policies(), k.Brake())),
	}
}

// applyKeys are the keys that apply-transitions.lua is given. A script may do anything with its keys as far as EVALSHA is concerned.
func applyKeys(k scripts.Keys, claimed string) []string {
	return both(k.Due(), k.Running(), k.Input(), claimed, k.Journal(), k.Outbox(), k.Stats(), k.Wake(), k.Model(all), k.Payload(all), k.History(all))
}

func dispatcher(k scripts.Keys) []grant {
	return append(applying(k),
		allow(eval, applyKeys(k, k.Claimed("")), both(k.Brake())),
		allow("type", reading(k.Claimed(""))),
		allow("zrangebyscore", reading(k.Due(), k.Running())),
		allow("rpush", writing(k.Input())),
		allow("blpop", both(k.Wake())),
		allow("hset hdel hincrby", both(k.Brake())),
		allow("hgetall hdel", both(k.Stats())),
	)
}

func poller(k scripts.Keys) []grant {
	return append(applying(k),
		allow(eval, applyKeys(k, k.Claimed(all)), both(k.Control(), k.Output(), k.Pollers(), k.Rejected())),
		allow("type llen lrange lpos rpush lrem lmove", both(k.Claimed(all))),
		allow("llen lpop", both(k.Control(), k.Output())),
		allow("blmove", both(k.Output())),
		allow("blmove", both(k.Control())),
		allow("zadd zrem zscore zrangebyscore", both(k.Pollers())),
		allow("rpush ltrim", writing(k.Rejected())),
		allow("set", writing(k.Payload(all))),
		allow("hsetnx hkeys", both(k.Policies())),
	)
}

func worker(k scripts.Keys) []grant {
	return []grant{
		allow(eval, both(k.Input(), k.Taken(all), k.Workers(), k.Output())),
		allow("lmove", both(k.Input(), k.Taken(all))),
		allow("blmove", both(k.Input())),
		allow("llen lrange lrem", both(k.Taken(all))),
		allow("zadd zrem zscore zrangebyscore", both(k.Workers())),
		allow("rpush", writing(k.Output())),
		allow("hmget", reading(k.Model(all))),
	}
}

func foreignWorker(k scripts.Keys) []grant {
	return []grant{
		allow("lpop blpop", both(k.Input())),
		allow("rpush", writing(k.Output())),
		allow("hget", reading(k.Model(all))), // to ask whether its attempt still counts
	}
}

func application(k scripts.Keys) []grant {
	return []grant{allow("rpush", writing(k.Control()))}
}
