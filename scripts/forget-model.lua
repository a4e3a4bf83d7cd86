-- Takes a uid out of the sets that a dispatcher reads, while the key of its model holds something that is no model. One
-- that was mended and saved since stays where it is.
--
-- KEYS[1] <queue>:model:<uid> hash HLEN
-- KEYS[2] <queue>:due zset ZREM, uid -> when it is due in Unix ms
-- KEYS[3] <queue>:urgent zset ZREM, the same of what was asked for at once
-- KEYS[4] <queue>:running zset ZREM, uid -> its deadline in Unix ms
-- KEYS[5] <queue>:stale_at zset ZREM, uid -> when its freshness changes in Unix ms
-- KEYS[6] <queue>:parked zset ZREM, uid -> when it was due in Unix ms
-- KEYS[7] where else it stands, one of <queue>:parked:<name> zset ZREM, <queue>:limit:<name> zset ZREM
-- ARGV[1] uid
-- Returns 1: it was taken out; 0: the key is gone, or holds a model
local hash, due, urgent, running, stale_at, parked, also = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local uid = ARGV[1]

if type(redis.pcall('HLEN', hash)) == 'number' then --@ mended since
  return 0
end
redis.call('ZREM', due, uid)
redis.pcall('ZREM', urgent, uid)
redis.call('ZREM', running, uid)
redis.pcall('ZREM', stale_at, uid)
redis.pcall('ZREM', parked, uid)
redis.pcall('ZREM', also, uid)
return 1
