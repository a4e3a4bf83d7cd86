-- Gives a sign of life of a worker pool, unless it is forgotten: then it has lost its entries and has to learn of that.
-- KEYS[1] <queue>:workers zset, owner -> last sign of life ms
-- ARGV[1] now in Unix ms, "" = the clock of Redis   ARGV[2] owner
-- Returns {now ms, 1 = the owner is known, 0 = it is forgotten}
local workers, now, owner = KEYS[1], ARGV[1], ARGV[2]
if now == '' then
  local time = redis.call('TIME')
  now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
end
if not redis.call('ZSCORE', workers, owner) then return {now, 0} end
redis.call('ZADD', workers, now, owner)
return {now, 1}
