-- Takes a message for a recipient in hand, or says what became of it: unless somebody else has done so since it was
-- read. What is done with leaves the line of the recipient; what cannot be delivered is kept apart.
--
-- KEYS[1] <queue>:recipients:<name> zset ZADD ZREM, recipient -> when it is told next in Unix ms
-- KEYS[2] <queue>:notices:<name> list LINDEX LLEN LTRIM
-- KEYS[3] <queue>:deliveries hash HDEL HGET HSET, recipient -> the message in hand, "" = none is, but something waits
-- KEYS[4] <queue>:undelivered list LTRIM RPUSH
-- KEYS[5] <queue>:stats hash HINCRBY
-- ARGV[1] recipient
-- ARGV[2] its delivery as it was read, "" = none
-- ARGV[3] its delivery as it is to be, "" = none
-- ARGV[4] when it is told next in Unix ms, "" = no more, as nothing stands in its line
-- ARGV[5] how many notices are done with
-- ARGV[6] counter, "" = none
-- ARGV[7] what could not be delivered, "" = nothing
-- ARGV[8] cap of what could not be delivered, in messages
-- ARGV[9] the first notice that stood in its line, "" = none
-- Returns 1: done, 0: it has changed since it was read
-- include: check
local recipients, notices, deliveries, undelivered, stats = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local recipient, was, is, next_ms, done = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
local counter, lost, cap, first = ARGV[6], ARGV[7], tonumber(ARGV[8]), ARGV[9]

-- Check
local changed = (redis.call('HGET', deliveries, recipient) or '') ~= was
-- A delivery may be what it was though another notifier has told the line meanwhile; then another notice stands first.
changed = changed or (redis.call('LINDEX', notices, 0) or '') ~= first
if changed or next_ms == '' and redis.call('LLEN', notices) > done then
  return 0
end

-- Write
if done > 0 then
  redis.call('LTRIM', notices, done, -1)
end
if is == '' and next_ms == '' then
  redis.call('HDEL', deliveries, recipient)
else
  redis.call('HSET', deliveries, recipient, is)
end
if next_ms == '' then
  redis.call('ZREM', recipients, recipient)
else
  redis.call('ZADD', recipients, next_ms, recipient)
end
if lost ~= '' then
  redis.call('RPUSH', undelivered, lost)
  redis.call('LTRIM', undelivered, -cap, -1)
end
if counter ~= '' then
  redis.call('HINCRBY', stats, counter, math.max(done, 1))
end
return 1
