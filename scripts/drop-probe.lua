-- Takes a probe out of a circuit that no attempt makes any more, so that another model may try it. While the attempt is
-- counted by the circuit, its end or its deadline settles it.
--
-- KEYS[1] <queue>:circuit:<key> hash HDEL HGET, as commit.lua writes it
-- KEYS[2] <queue>:model:<uid> hash HGET, the model that is said to try it
-- KEYS[3] <queue>:gates zset ZADD, gate -> when a dispatcher is to look at it in Unix ms
-- ARGV[1] uid of that model
-- ARGV[2] gate of the circuit
-- ARGV[3] now in Unix ms
-- Returns 1: another may try it; 0: there is another probe, or the attempt goes on
-- include: check
local circuit, hash, gates = KEYS[1], KEYS[2], KEYS[3]
local uid, gate, now = ARGV[1], ARGV[2], ARGV[3]

-- Check
local counted = ' ' .. (redis.call('HGET', hash, 'counted_by') or '') .. ' '
if redis.call('HGET', circuit, 'probe') ~= uid or string.find(counted, ' ' .. gate .. ' ', 1, true) then
  return 0
end

-- Write
redis.call('HDEL', circuit, 'probe')
redis.call('ZADD', gates, 'XX', now, gate)
return 1
