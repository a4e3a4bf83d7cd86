-- Gives a heartbeat of a worker pool, unless it is forgotten: then it has lost its entries and has to learn of that.
--
-- KEYS[1] <queue>:workers zset ZADD ZSCORE, owner -> last heartbeat in Unix ms
-- ARGV[1] now in Unix ms, "" = the clock of Redis
-- ARGV[2] owner
-- Returns {now in Unix ms, 1 = the owner is known, 0 = it is forgotten}
-- include: clock
local workers = KEYS[1]
local now, owner = clock(ARGV[1]), ARGV[2]

-- Check
if not redis.call('ZSCORE', workers, owner) then
  return {now, 0}
end

-- Write
redis.call('ZADD', workers, now, owner) --@ heartbeat
return {now, 1}
