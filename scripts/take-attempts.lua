-- Moves the oldest entries of the input list into the owner's taken list, where they stand until they are answered or
-- requeued. It is also a heartbeat; with nothing to move it is no more than that. An owner that was forgotten gets
-- nothing. To repeat it after a lost reply is safe: if more stand there than the owner knows of, nothing is moved, and
-- it gets all of them. An owner with an order takes nothing new.
--
-- KEYS[1] <queue>-input list LLEN LMOVE
-- KEYS[2] <queue>:taken:<owner> list LLEN LMOVE-to LRANGE
-- KEYS[3] <queue>:workers zset ZADD ZSCORE, owner -> last heartbeat in Unix ms
-- KEYS[4] <queue>:orders hash HGET, name of a worker pool -> quiet or stop, and behind a space who asks for it
-- ARGV[1] now in Unix ms, "" = the clock of Redis
-- ARGV[2] owner
-- ARGV[3] 1 = a new owner, "" = one that has been here before
-- ARGV[4] most entries to move
-- ARGV[5] how many entries the owner knows of; -1: it is not sure
-- ARGV[6] name of the worker pool: that which the owner had first
-- Returns {now in Unix ms, what follows: 0 nothing as the owner is forgotten, 1 what was moved, 2 all that stands
--   there, {entries, oldest first}, order, "" = none}
-- include: clock, types
local input, taken, workers, orders = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now, owner, new = clock(ARGV[1]), ARGV[2], ARGV[3]
local most, known, pool = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]

-- Check. A pool lives also while a list is of another type, and works while nobody can ask it to do otherwise.
local wrong, unfit = wrong_type(header_types)
if unfit[3] or (unfit[1] or unfit[2]) and most > 0 then
  return wrong
end
if new == '' and not redis.call('ZSCORE', workers, owner) then
  return {now, 0, {}, ''}
end

-- Write
redis.call('ZADD', workers, now, owner) --@ heartbeat
local entries, order = {}, not unfit[4] and redis.call('HGET', orders, pool) or ''
if most == 0 then
  return {now, 1, entries, order}
end
if redis.call('LLEN', taken) > known then --@ replay
  return {now, 2, redis.call('LRANGE', taken, 0, -1), order}
end
if order ~= '' then --@ quiet
  return {now, 1, entries, order}
end
for _ = 1, math.min(most, redis.call('LLEN', input)) do
  entries[#entries + 1] = redis.call('LMOVE', input, taken, 'LEFT', 'RIGHT') --@ take
end
return {now, 1, entries, order}
