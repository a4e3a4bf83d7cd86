-- Notes what stands first in the input list, so that it can be told afterwards when an attempt was taken. One with a
-- lower ticket than the one that was noted last is no news: it was handed back.
-- When there are too many, those before the newest eighth are thinned out: each that is dropped lies between two which
-- were first seen within a while of each other, and what it was seen to hold up counts for the one before it.
--
-- KEYS[1] <queue>:front list DEL LINDEX LLEN LPUSH LRANGE LSET LTRIM RPUSH, "<ticket> <first seen> <last seen>" of an
--   attempt, "<ticket> <seen>" of an empty list
-- KEYS[2] <queue>-input list LLEN
-- KEYS[3] <queue>:stats hash HGET
-- ARGV[1] now in Unix ms, "" = the clock of Redis
-- ARGV[2] ticket of the first attempt, "" = the input list is empty
-- ARGV[3] since when it was looked at, in Unix ms: it was the first at some time since then
-- ARGV[4] most fronts
-- ARGV[5] how far apart the older ones are, in ms
-- Returns 1: noted; 0: it is no news
-- include: clock
-- include: check
local front, input, stats = KEYS[1], KEYS[2], KEYS[3]
local now, ticket, since = clock(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local most, apart = tonumber(ARGV[4]), tonumber(ARGV[5])

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
if redis.call('LLEN', front) <= most then
  return 1
end

local eighth = math.ceil(most / 8)
local old, thin = redis.call('LRANGE', front, 0, -eighth - 1), {}
local before -- the one that was kept last, unless the list was empty then
for i, text in ipairs(old) do
  local number, seen, until_ = string.match(text, '^(%d+) (%d+) ?(%d*)$')
  local _, next_seen = string.match(old[i + 1] or '', '^(%d+) (%d+)')
  if until_ == '' or not until_ then
    before = nil
    thin[#thin + 1] = text
  elseif before and next_seen and tonumber(next_seen) - before.seen <= apart then
    thin[#thin] = string.format('%s %.0f %s', before.number, before.seen, until_) --@ thin
  else
    before = {number = number, seen = tonumber(seen)}
    thin[#thin + 1] = text
  end
end
redis.call('LTRIM', front, -eighth, -1)
for i = #thin, math.max(1, #thin + 2 * eighth - most + 1), -1 do --@ front cap
  redis.call('LPUSH', front, thin[i])
end
return 1
