-- Notes when gates are to be looked at again that a dispatcher has looked at. One that somebody has opened meanwhile
-- stays due. A gate that no model waits for any more is forgotten, and so is a hold that is over.
--
-- KEYS[1] <queue>:gates zset ZADD ZREM ZSCORE, gate -> when a dispatcher is to look at it in Unix ms
-- KEYS[2] <queue>:holds hash HDEL HINCRBY, id -> JSON; and changes, how many there were
-- KEYS[3..] per gate its <queue>:parked:<name> zset ZCARD
-- ARGV[1] until when the dispatcher alone was to look at the gates, in Unix ms
-- ARGV[2..] per gate: its name, when it is to be looked at again in Unix ms, "stays" = also if no model waits for it,
--   "" = it is open, and the id of the hold that it was, "" = of none
-- Returns OK, whatever was noted
-- include: check
local gates, holds = KEYS[1], KEYS[2]
local alone = tonumber(ARGV[1])

for at = 2, #ARGV, 4 do
  local gate, again, stays, hold = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  if tonumber(redis.call('ZSCORE', gates, gate) or '') == alone then --@ opened meanwhile
    if stays == '' and redis.pcall('ZCARD', KEYS[(at + 10) / 4]) == 0 then --@ models wait
      redis.call('ZREM', gates, gate)
      if hold ~= '' and redis.call('HDEL', holds, hold) == 1 then --@ over
        redis.call('HINCRBY', holds, 'changes', 1)
      end
    else
      redis.call('ZADD', gates, again, gate) --@ again
    end
  end
end
return redis.status_reply('OK')
