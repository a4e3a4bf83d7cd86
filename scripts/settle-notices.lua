-- Takes a message for a recipient in hand, or notes its result, unless somebody else has done so since it was read.
-- Settled notices leave the recipient's mailbox; its summary follows the last of many. Undelivered messages are kept in
-- a list of their own.
--
-- KEYS[1] <queue>:recipients:<name> zset ZADD ZREM ZSCORE, recipient -> next delivery in Unix ms
-- KEYS[2] <queue>:notices:<name> list LINDEX LLEN LTRIM RPUSH
-- KEYS[3] <queue>:deliveries hash HDEL HGET HSET, recipient -> the message in hand, "" = none is, but something waits
-- KEYS[4] <queue>:undelivered list LTRIM RPUSH
-- KEYS[5] <queue>:stats hash HINCRBY
-- KEYS[6] <queue>:summary:<name> hash DEL HGETALL, notice without its end -> how many it stands for
-- ARGV[1] recipient
-- ARGV[2] its delivery as it was read, "" = none
-- ARGV[3] its delivery as it is to be, "" = none
-- ARGV[4] next delivery in Unix ms, "" = none, as its mailbox is empty
-- ARGV[5] how many notices are settled
-- ARGV[6] counter, "" = none
-- ARGV[7] the undelivered message, "" = none
-- ARGV[8] cap of the undelivered messages
-- ARGV[9] the first notice that was in its mailbox, "" = none
-- ARGV[10] its next delivery in Unix ms as it was read, "" = none
-- ARGV[11] a summary follows when fewer notices wait
-- ARGV[12] the end of its notices: a format of a number of its own and how many it stands for
-- Returns 1: done, 0: it has changed since it was read
-- include: check
local recipients, notices, deliveries, undelivered, stats = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local summary = KEYS[6]
local recipient, was, is, next_ms, done = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
local counter, undelivered_text, cap, first, due = ARGV[6], ARGV[7], tonumber(ARGV[8]), ARGV[9], ARGV[10]
local few, ending = tonumber(ARGV[11]), ARGV[12]

-- Check
local changed = (redis.call('HGET', deliveries, recipient) or '') ~= was
-- The delivery may look the same though another notifier has settled some; then another notice is the first.
changed = changed or (redis.call('LINDEX', notices, 0) or '') ~= first
-- Likewise if its holder has taken it once more.
changed = changed or tonumber(redis.call('ZSCORE', recipients, recipient) or '') ~= tonumber(due)
if changed or next_ms == '' and redis.call('LLEN', notices) > done then
  return 0
end

-- Write
if done > 0 then
  redis.call('LTRIM', notices, done, -1)
end
local follows = false
if (done > 0 or next_ms == '') and redis.call('LLEN', notices) < few then
  local counts = redis.call('HGETALL', summary)
  for i = 1, #counts, 2 do
    redis.call('RPUSH', notices, counts[i] .. string.format(ending, i, counts[i + 1]))
  end
  redis.call('DEL', summary)
  follows = #counts > 0
end
if is == '' and next_ms == '' and not follows then
  redis.call('HDEL', deliveries, recipient)
else
  redis.call('HSET', deliveries, recipient, is)
end
if next_ms == '' and not follows then
  redis.call('ZREM', recipients, recipient)
elseif next_ms ~= '' then
  redis.call('ZADD', recipients, next_ms, recipient)
end
if undelivered_text ~= '' then
  redis.call('RPUSH', undelivered, undelivered_text)
  redis.call('LTRIM', undelivered, -cap, -1)
end
if counter ~= '' then
  redis.call('HINCRBY', stats, counter, math.max(done, 1))
end
return 1
