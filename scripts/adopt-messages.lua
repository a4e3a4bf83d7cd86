-- Moves the claimed messages of a poller whose lease has expired to another poller, and forgets it. A heartbeat from
-- the future is that of an expired one too: the clock was set back since, and whoever is alive gives a new one soon.
--
-- KEYS[1] <queue>:pollers zset ZADD ZREM ZSCORE, owner -> last heartbeat in Unix ms
-- KEYS[2] <queue>:claimed:<owner> list LLEN LMOVE of the expired one
-- KEYS[3] <queue>:claimed:<owner> list LMOVE-to of the adopter
-- ARGV[1] now in Unix ms, "" = the clock of Redis
-- ARGV[2] owner that has expired
-- ARGV[3] its lease in ms
-- ARGV[4] most entries to move at once
-- ARGV[5] owner that adopts; the same as the other: it resigns, and need not have expired
-- Returns how many messages were moved; -1: the owner is alive or already forgotten
-- include: clock
-- include: check
local pollers, orphan, claimed = KEYS[1], KEYS[2], KEYS[3]
local now, owner, lease = tonumber(clock(ARGV[1])), ARGV[2], tonumber(ARGV[3])
local most, adopter = tonumber(ARGV[4]), ARGV[5]

-- Check
local seen = tonumber(redis.call('ZSCORE', pollers, owner) or '')
if not seen or adopter ~= owner and now - lease < seen and seen <= now then --@ expired
  return -1
end

-- Write. An adopter that was itself forgotten must be found again.
redis.call('ZADD', pollers, 'NX', string.format('%.0f', now - lease), adopter)
local moved = 0
while moved < most do
  local message = redis.call('LMOVE', orphan, claimed, 'LEFT', 'RIGHT') --@ adopt
  if not message then
    break
  end
  moved = moved + 1
end
if redis.call('LLEN', orphan) == 0 then --@ forget
  redis.call('ZREM', pollers, owner)
end
return moved
