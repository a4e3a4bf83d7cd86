-- Moves the claimed messages of a poller that has given no sign of life since the cutoff to another poller, and forgets it.
-- KEYS[1] <queue>:pollers zset, owner -> last sign of life ms   KEYS[2] <queue>:claimed:<owner> list of the silent one
-- KEYS[3] <queue>:claimed:<owner> list of the adopter
-- ARGV[1] the silent owner   ARGV[2] cutoff in Unix ms   ARGV[3] most entries to move at once   ARGV[4] the adopter
-- Returns how many messages were moved; -1: the owner is alive or already forgotten
local pollers, orphan, claimed = KEYS[1], KEYS[2], KEYS[3]
local owner, cutoff, most, adopter = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local seen = redis.call('ZSCORE', pollers, owner)
if not seen or tonumber(seen) > tonumber(cutoff) then return -1 end
redis.call('ZADD', pollers, 'NX', cutoff, adopter) -- an adopter that was itself forgotten must be found again
local moved = 0
while moved < most and redis.call('LMOVE', orphan, claimed, 'LEFT', 'RIGHT') do moved = moved + 1 end
if redis.call('LLEN', orphan) == 0 then redis.call('ZREM', pollers, owner) end
return moved
