-- Removes from the outbox the entries that all readers have acknowledged, and those that nobody has read in time.
--
-- KEYS[1] <queue>:outbox stream XTRIM
-- KEYS[2] <queue>:stats hash HINCRBY
-- ARGV[1] id of the first entry that somebody has not acknowledged, "" = nobody reads
-- ARGV[2] how long an entry is kept, in ms
-- ARGV[3] cap, in entries
-- Returns how many went unread
-- include: check, clock
local outbox, stats = KEYS[1], KEYS[2]
local first, keep, cap = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

-- Write
if first ~= '' then
  redis.call('XTRIM', outbox, 'MINID', first)
end
-- The clock of Redis has written the ids, whatever clock decides.
local oldest = string.format('%.0f', math.max(0, tonumber(clock('')) - keep))
local unread = redis.call('XTRIM', outbox, 'MINID', oldest) + redis.call('XTRIM', outbox, 'MAXLEN', cap)
if unread > 0 then
  redis.call('HINCRBY', stats, 'outbox_expired', unread)
end
return unread
