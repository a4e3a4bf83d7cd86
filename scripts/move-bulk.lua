-- Moves a bulk on: notes the result of a step, or the end. If the bulk has begun anew meanwhile, is over or was moved
-- by somebody else, nothing changes. A bulk that is over is kept for a day, and nobody carries it out.
--
-- KEYS[1] <queue>:bulks zset ZREM, id -> since in Unix ms, of those that are not over
-- KEYS[2] <queue>:bulks_ended zset EXPIRE ZADD ZREMRANGEBYSCORE, id -> when it ended in Unix ms, of those that were
--   over within a day
-- KEYS[3] <queue>:bulk:<name> hash EXPIRE HDEL HMGET HSET
-- KEYS[4] one of <queue>:deeds stream XADD, <queue>:journal stream XADD: this if nobody is to be named
-- ARGV[1] its id
-- ARGV[2] since as it was read
-- ARGV[3] step as it was read
-- ARGV[4] now in Unix ms if it is over, "" = it goes on
-- ARGV[5] what is done, for the deeds, see include/deed.lua, "" = nobody is to be named
-- ARGV[6..] its fields, each before its value: "" = it has none
-- Returns 1: it was moved, 2: somebody else has moved it, begun it anew or ended it
-- include: check, fields, deed
local bulks, ended, bulk, deeds, deed = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[5]
local id, since, step, ends = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

-- Check
local is = redis.call('HMGET', bulk, 'since', 'step', 'ended')
if not is[1] or is[3] then
  redis.call('ZREM', bulks, id) --@ listed no more
end
if is[1] ~= since or (is[2] or '') ~= step or is[3] then --@ another step
  return 2
end

-- Write
write_deed(deeds, deed)
set_fields(bulk, 6, #ARGV)
if ends ~= '' then
  redis.call('ZREM', bulks, id) --@ end
  redis.call('ZREMRANGEBYSCORE', ended, '-inf', tonumber(ends) - 86400000)
  redis.call('ZADD', ended, ends, id) --@ over
  redis.call('EXPIRE', ended, 86400)
  redis.call('EXPIRE', bulk, 86400)
end
return 1
