-- Notes when dispatchers recheck blockers that one has checked. A blocker that somebody has opened meanwhile stays due.
-- A blocker that no model waits for any more is forgotten, and so is a hold that is over.
--
-- KEYS[1] <queue>:gates zset ZADD ZREM ZSCORE, blocker -> when a dispatcher rechecks it, in Unix ms
-- KEYS[2] <queue>:holds hash HDEL HINCRBY, id -> JSON; and changes, how many there were
-- KEYS[3..] per blocker its <queue>:parked:<name> zset ZCARD
-- ARGV[1] until when this dispatcher alone was to recheck the blockers, in Unix ms
-- ARGV[2..] per blocker: its name, when it is rechecked in Unix ms, "stays" = also if no model waits for it, "" = it is
--   open, and the id of its hold, "" = it is no hold
-- Returns OK, whatever was noted
-- include: check
local blockers, holds = KEYS[1], KEYS[2]
local alone = tonumber(ARGV[1])

for at = 2, #ARGV, 4 do
  local blocker, recheck_at, stays, hold = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  if tonumber(redis.call('ZSCORE', blockers, blocker) or '') == alone then --@ opened meanwhile
    if stays == '' and redis.pcall('ZCARD', KEYS[(at + 10) / 4]) == 0 then --@ models wait
      redis.call('ZREM', blockers, blocker)
      if hold ~= '' and redis.call('HDEL', holds, hold) == 1 then --@ over
        redis.call('HINCRBY', holds, 'changes', 1)
      end
    else
      redis.call('ZADD', blockers, recheck_at, blocker) --@ again
    end
  end
end
return redis.status_reply('OK')
