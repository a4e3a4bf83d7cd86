-- Puts a message that could not be delivered back at the end of its recipient's mailbox. If it is no longer kept,
-- somebody else has requeued or dropped it, and nothing happens.
--
-- KEYS[1] <queue>:undelivered list LREM
-- KEYS[2] <queue>:recipients:<name> zset ZADD, recipient -> next delivery in Unix ms
-- KEYS[3] <queue>:notices:<name> list RPUSH
-- KEYS[4] <queue>:deliveries hash HGET HSETNX, recipient -> the message in hand, "" = none is, but something waits
-- KEYS[5] one of <queue>:deeds stream XADD, <queue>:journal stream XADD: this if nobody is to be named
-- ARGV[1] the message as it is kept
-- ARGV[2] recipient
-- ARGV[3] now in Unix ms
-- ARGV[4] what is done, for the deeds, see include/deed.lua, "" = nobody is to be named
-- ARGV[5..] its notices
-- Returns how many were requeued
-- include: check, deed
local undelivered, recipients, notices, deliveries, deeds = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local message, recipient, now = ARGV[1], ARGV[2], ARGV[3]

-- Write
local moved = redis.call('LREM', undelivered, 1, message)
if moved == 1 then
  for i = 5, #ARGV do
    redis.call('RPUSH', notices, ARGV[i])
  end
  local held = string.find(redis.call('HGET', deliveries, recipient) or '', '"by"', 1, true)
  redis.call('ZADD', recipients, held and 'NX' or 'LT', now, recipient)
  redis.call('HSETNX', deliveries, recipient, '')
end
write_deed(deeds, ARGV[4], moved)
return moved
