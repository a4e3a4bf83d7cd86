-- Samples the head of the input list; the samples show later when an attempt was taken. An attempt with a lower ticket
-- than the last sample is no news: it was handed back.
--
-- KEYS[1] <queue>:front list DEL LINDEX LLEN LSET RPUSH, "<ticket> <first seen> <last seen>" of an attempt,
--   "<ticket> <seen>" of an empty list
-- KEYS[2] <queue>-input list LLEN
-- KEYS[3] <queue>:stats hash HGET
-- ARGV[1] now in Unix ms, "" = the clock of Redis
-- ARGV[2] ticket of the first attempt, "" = the input list is empty
-- ARGV[3] start of the sample in Unix ms: the attempt was the first at some time since then
-- Returns how many are noted; 0: it is no news
-- include: clock, check
local front, input, stats = KEYS[1], KEYS[2], KEYS[3]
local now, ticket, since = clock(ARGV[1]), tonumber(ARGV[2]), ARGV[3]

-- Check
local drawn = tonumber(redis.call('HGET', stats, 'start') or '') or 0
local noted = redis.call('LINDEX', front, -1) or ''
local newest, first, last = string.match(noted, '^(%d+) (%d+) ?(%d*)$')
newest = tonumber(newest) or 0
if newest > drawn then -- somebody has reset the counter: tickets begin anew
  redis.call('DEL', front)
  newest, first, last = 0, nil, nil
end

if not ticket then
  if redis.call('LLEN', input) > 0 or newest == 0 or last == '' then --@ waits
    return 0
  end
  redis.call('RPUSH', front, string.format('%d %s', drawn, now)) --@ drained
elseif ticket > newest then --@ handed back
  redis.call('RPUSH', front, string.format('%d %s %s', ticket, now, since)) --@ front
elseif ticket == newest and last ~= '' and tonumber(last) < tonumber(since) then
  redis.call('LSET', front, -1, string.format('%d %s %s', ticket, first, since)) --@ still in front
else
  return 0
end
return redis.call('LLEN', front)
