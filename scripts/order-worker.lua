-- Asks a worker pool for something, or for nothing any more, and tells the journal who asks. The pool learns of it by
-- its next heartbeat. One that is forgotten by then cannot be asked.
--
-- KEYS[1] <queue>:workers zset ZSCORE, owner -> last heartbeat in Unix ms
-- KEYS[2] <queue>:orders hash HDEL HGET HSET, owner -> quiet or stop, and behind a space who asks for it
-- KEYS[3] <queue>:journal stream XADD
-- ARGV[1] owner
-- ARGV[2] its order, as it is stored, "" = it works as usual again
-- ARGV[3] event for the journal
-- ARGV[4] who asks
-- ARGV[5] now in RFC 3339
-- ARGV[6] journal cap, in entries; below 1: there is no journal
-- Returns 1: it is asked; 2: it was so before; 0: there is no such pool
-- include: check
local workers, orders, journal = KEYS[1], KEYS[2], KEYS[3]
local owner, order, event, by, now, cap = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]

-- Check
if not redis.call('ZSCORE', workers, owner) then
  return 0
end
if (redis.call('HGET', orders, owner) or '') == order then
  return 2
end

-- Write
if order == '' then
  redis.call('HDEL', orders, owner)
else
  redis.call('HSET', orders, owner, order)
end
if tonumber(cap) > 0 then
  redis.call('XADD', journal, 'MAXLEN', '~', cap, '*', 'event', event, 'key', owner, 'at', now, 'by', by)
end
return 1
