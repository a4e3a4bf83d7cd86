-- Moves the entries of a worker pool back to the head of the input list, in their order, and forgets the pool. Both
-- happen at once, so that a pool which was only slow learns of it by its next heartbeat.
--
-- KEYS[1] <queue>:workers zset ZREM ZSCORE, owner -> last heartbeat in Unix ms
-- KEYS[2] <queue>:taken:<owner> list LLEN LMOVE LREM
-- KEYS[3] <queue>-input list LMOVE-to
-- ARGV[1] owner
-- ARGV[2] last heartbeat in Unix ms by which it was found expired, "" = the owner itself leaves
-- ARGV[3..] entries to drop, because nobody is to work on them any more
-- Returns how many entries were requeued; -1: the owner has given a heartbeat since, or is forgotten
-- include: check
local workers, taken, input = KEYS[1], KEYS[2], KEYS[3]
local owner, heartbeat = ARGV[1], ARGV[2]

-- Check
local seen = redis.call('ZSCORE', workers, owner)
if heartbeat ~= '' and (not seen or tonumber(seen) ~= tonumber(heartbeat)) then --@ heartbeat
  return -1
end

-- Write
for i = 3, #ARGV do
  redis.call('LREM', taken, 1, ARGV[i]) --@ drop
end
local moved = redis.call('LLEN', taken)
for _ = 1, moved do
  redis.call('LMOVE', taken, input, 'RIGHT', 'LEFT') --@ requeue
end
redis.call('ZREM', workers, owner)
return moved
