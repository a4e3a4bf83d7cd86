-- Puts entries of the outbox in the mailboxes of their recipients, and acknowledges them. If an entry is not pending,
-- another notifier has routed it, and nothing happens. A summary counts what a full mailbox has no room for.
--
-- KEYS[1] <queue>:outbox stream XACK
-- KEYS[2] <queue>:stats hash HINCRBY
-- KEYS[3] <queue>:deliveries hash HSETNX, recipient -> the message in hand, "" = none is, but something waits
-- KEYS[4..] per notice <queue>:recipients:<name> zset ZADD, recipient -> next delivery in Unix ms,
--   <queue>:notices:<name> list LLEN RPUSH, and <queue>:summary:<name> hash HEXISTS HINCRBY HLEN, notice without its
--   end -> how many it stands for
-- ARGV[1] consumer group
-- ARGV[2] cap of a summary, in causes
-- ARGV[3..] per entry its id, how many of its routes lead to nobody, and how many recipients it has; per recipient its
--   name, when the delivery is due in Unix ms, the notice, cap of the mailbox for it, the beginning of its summary and
--   what that says of the cause
-- Returns how many entries were routed, and how many notices are only counted
-- include: check
local outbox, stats, deliveries = KEYS[1], KEYS[2], KEYS[3]
local group, most_causes = ARGV[1], tonumber(ARGV[2])

-- Check
for place = 4, #KEYS, 3 do
  local fault = misfit(place, 'zset') or misfit(place + 1, 'list') or misfit(place + 2, 'hash')
  if fault then
    return redis.error_reply('WRONGTYPE ' .. fault)
  end
end

-- Write
local at, key, routed, counted = 3, 4, 0, 0
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
    local recipients, notices, summary = KEYS[key], KEYS[key + 1], KEYS[key + 2]
    if mine and redis.call('LLEN', notices) >= tonumber(ARGV[at + 3]) then
      local of = ARGV[at + 4]
      local caused = of .. ARGV[at + 5]
      if redis.call('HEXISTS', summary, caused) == 1 or redis.call('HLEN', summary) < most_causes then
        of = caused
      end
      redis.call('HINCRBY', summary, of, 1)
      redis.call('HINCRBY', stats, 'notices_dropped', 1)
      counted = counted + 1
    elseif mine then
      redis.call('RPUSH', notices, ARGV[at + 2])
      redis.call('ZADD', recipients, 'NX', ARGV[at + 1], ARGV[at])
      redis.call('HSETNX', deliveries, ARGV[at], '')
    end
    at = at + 6
    key = key + 3
  end
end
return {routed, counted}
