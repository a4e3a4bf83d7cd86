-- Moves the oldest entries of the input list into the owner's taken list, where they stand until they are answered or
-- requeued. It is also a heartbeat; with nothing to move it is no more than that. An owner that was forgotten gets
-- nothing. To repeat it after a lost reply is safe: if more stand there than the owner knows of, nothing is moved, and
-- it gets all of them.
--
-- KEYS[1] <queue>-input list LLEN LMOVE
-- KEYS[2] <queue>:taken:<owner> list LLEN LMOVE-to LRANGE
-- KEYS[3] <queue>:workers zset ZADD ZSCORE, owner -> last heartbeat in Unix ms
-- ARGV[1] now in Unix ms, "" = the clock of Redis
-- ARGV[2] owner
-- ARGV[3] 1 = a new owner, "" = one that has been here before
-- ARGV[4] most entries to move
-- ARGV[5] how many entries the owner knows of; -1: it is not sure
-- Returns {now in Unix ms, what follows: 0 nothing as the owner is forgotten, 1 what was moved, 2 all that stands
--   there, {entries, oldest first}}
-- include: clock, types
local input, taken, workers = KEYS[1], KEYS[2], KEYS[3]
local now, owner, new = clock(ARGV[1]), ARGV[2], ARGV[3]
local most, known = tonumber(ARGV[4]), tonumber(ARGV[5])

-- Check. A pool lives also while a list is of another type.
local wrong, unfit = wrong_type(header_types)
if unfit[3] or wrong and most > 0 then
  return wrong
end
if new == '' and not redis.call('ZSCORE', workers, owner) then
  return {now, 0, {}}
end

-- Write
redis.call('ZADD', workers, now, owner) --@ heartbeat
local entries = {}
if most == 0 then
  return {now, 1, entries}
end
if redis.call('LLEN', taken) > known then --@ replay
  return {now, 2, redis.call('LRANGE', taken, 0, -1)}
end
for _ = 1, math.min(most, redis.call('LLEN', input)) do
  entries[#entries + 1] = redis.call('LMOVE', input, taken, 'LEFT', 'RIGHT') --@ take
end
return {now, 1, entries}
