-- Puts entries of the outbox in the mailboxes of their recipients, and acknowledges them. If an entry is not pending,
-- another notifier has routed it, and nothing happens.
--
-- KEYS[1] <queue>:outbox stream XACK
-- KEYS[2] <queue>:stats hash HINCRBY
-- KEYS[3] <queue>:deliveries hash HSETNX, recipient -> the message in hand, "" = none is, but something waits
-- KEYS[4..] per notice <queue>:recipients:<name> zset ZADD, recipient -> next delivery in Unix ms, and
--   <queue>:notices:<name> list LLEN RPUSH
-- ARGV[1] consumer group
-- ARGV[2] cap of a mailbox, in notices
-- ARGV[3..] per entry its id, how many of its routes lead to nobody, and how many recipients it has; per recipient its
--   name, when the delivery is due in Unix ms, and the notice
-- Returns how many entries were routed
-- include: check
local outbox, stats, deliveries = KEYS[1], KEYS[2], KEYS[3]
local group, most = ARGV[1], tonumber(ARGV[2])

-- Check
for place = 4, #KEYS, 2 do
  local fault = misfit(place, 'zset') or misfit(place + 1, 'list')
  if fault then
    return redis.error_reply('WRONGTYPE ' .. fault)
  end
end

-- Write
local at, key, routed = 3, 4, 0
while at <= #ARGV do
  local id, nobody, count = ARGV[at], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  at = at + 3
  local mine = redis.call('XACK', outbox, group, id) == 1
  if mine then
    routed = routed + 1
    if nobody > 0 then
      redis.call('HINCRBY', stats, 'notices_to_nobody', nobody)
    end
  end
  for _ = 1, count do
    local recipients, notices = KEYS[key], KEYS[key + 1]
    if mine and redis.call('LLEN', notices) >= most then
      redis.call('HINCRBY', stats, 'notices_dropped', 1)
    elseif mine then
      redis.call('RPUSH', notices, ARGV[at + 2])
      redis.call('ZADD', recipients, 'NX', ARGV[at + 1], ARGV[at])
      redis.call('HSETNX', deliveries, ARGV[at], '')
    end
    at = at + 3
    key = key + 2
  end
end
return routed
