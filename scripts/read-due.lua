-- Reads the clock, what is due, whose deadline has passed, and when either happens next. Writes nothing.
-- KEYS[1] <queue>:due zset, uid -> refresh_at ms   KEYS[2] <queue>:running zset, uid -> deadline_at ms   KEYS[3] <queue>-input list
-- ARGV[1] now in Unix ms, "" = the clock of Redis   ARGV[2] most uids of each kind
-- Returns {now ms, entries in input, next due ms or "", next deadline ms or "", {due uids, oldest first}, {expired uids}}
local due, running, input = KEYS[1], KEYS[2], KEYS[3]
local now, limit = ARGV[1], ARGV[2]
if now == '' then
  local time = redis.call('TIME')
  now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
end
local function past(set) return redis.call('ZRANGEBYSCORE', set, '-inf', now, 'LIMIT', 0, limit) end
local function following(set) return redis.call('ZRANGEBYSCORE', set, '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2] or '' end
return {now, redis.call('LLEN', input), following(due), following(running), past(due), past(running)}
