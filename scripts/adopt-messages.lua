-- Moves the claimed messages of a poller whose lease has expired to another poller, and forgets it.
--
-- KEYS[1] <queue>:pollers zset, owner -> last heartbeat in Unix ms
-- KEYS[2] <queue>:claimed:<owner> list of the expired one
-- KEYS[3] <queue>:claimed:<owner> list of the adopter
-- ARGV[1] owner that has expired
-- ARGV[2] cutoff in Unix ms: no heartbeat since
-- ARGV[3] most entries to move at once
-- ARGV[4] owner that adopts
-- Returns how many messages were moved; -1: the owner is alive or already forgotten
local pollers, orphan, claimed = KEYS[1], KEYS[2], KEYS[3]
local owner, cutoff, most, adopter = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]

-- Check
local seen = redis.call('ZSCORE', pollers, owner)
if not seen or tonumber(seen) > tonumber(cutoff) then --@ expired
  return -1
end

-- Write. An adopter that was itself forgotten must be found again.
redis.call('ZADD', pollers, 'NX', cutoff, adopter)
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
