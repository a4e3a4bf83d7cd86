-- Reads the clock, what is due, whose deadline has passed, and when either happens next. Writes nothing.
--
-- KEYS[1] <queue>:due zset, uid -> refresh_at in Unix ms
-- KEYS[2] <queue>:running zset, uid -> deadline_at in Unix ms
-- KEYS[3] <queue>-input list
-- ARGV[1] now in Unix ms, "" = the clock of Redis
-- ARGV[2] most uids of each kind
-- Returns {now in Unix ms, entries in input, next due in Unix ms or "", next deadline in Unix ms or "", {due uids,
--   oldest first}, {expired uids, oldest first}}
-- include: clock
local due, running, input = KEYS[1], KEYS[2], KEYS[3]
local now, limit = clock(ARGV[1]), ARGV[2]

local next_due = redis.call('ZRANGEBYSCORE', due, '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2] or ''
local next_deadline = redis.call('ZRANGEBYSCORE', running, '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2] or ''
local is_due = redis.call('ZRANGEBYSCORE', due, '-inf', now, 'LIMIT', 0, limit) --@ due
local expired = redis.call('ZRANGEBYSCORE', running, '-inf', now, 'LIMIT', 0, limit) --@ expired
return {now, redis.call('LLEN', input), next_due, next_deadline, is_due, expired}
