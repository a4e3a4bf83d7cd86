-- Sums up the attempts of the brake's window, forgets older ones, and engages or releases the brake. Off, it does
-- nothing.
--
-- KEYS[1] <queue>:brake hash
-- KEYS[2] <queue>:stats hash
-- KEYS[3] <queue>:journal stream
-- KEYS[4] <queue>:outbox stream
-- ARGV[1] now in Unix ms
-- ARGV[2] the same in RFC 3339
-- ARGV[3] journal cap, in entries; below 1: there is no journal
-- Returns {"engaged", "released" or "" when nothing changed, successes in the window, failures in the window}
-- include: chunks
local brake, stats, journal, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now, text, cap = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])

-- Check
local set = redis.call('HMGET', brake, 'on', 'share', 'window_ms', 'min', 'engaged_at')
local share, window, min, engaged = tonumber(set[2]), tonumber(set[3]), tonumber(set[4]), set[5]
if set[1] ~= '1' or not (share and window and min) then
  return {'', 0, 0}
end

-- The window is counted in tenths of it: @ok.<n> and @failed.<n>, where n is the Unix ms at which a tenth began. One
-- that begins more than a window ahead is from before the clock was set back.
local count, old = {ok = 0, failed = 0}, {}
local fields = redis.call('HGETALL', stats)
for i = 1, #fields, 2 do
  local kind, began = string.match(fields[i], '^@(%a+)%.(%d+)$')
  local age = kind and now - tonumber(began)
  if age and (age >= window or age < -window) then --@ oldest
    old[#old + 1] = fields[i]
  elseif count[kind] then
    count[kind] = count[kind] + (tonumber(fields[i + 1]) or 0)
  end
end
local total, changed = count.ok + count.failed, ''
if not engaged and total >= min and count.failed >= share * total then --@ engage
  changed = 'engaged'
elseif engaged and total > 0 and count.failed < share * total / 2 then --@ release
  changed = 'released'
end

-- Write
for first, last in chunks(old) do
  redis.call('HDEL', stats, unpack(old, first, last))
end
if changed == '' then
  return {changed, count.ok, count.failed}
end
local event = {'event', 'brake_' .. changed, 'at', text, 'successes', count.ok, 'failures', count.failed}
if cap > 0 then
  redis.call('XADD', journal, 'MAXLEN', '~', cap, '*', unpack(event))
end
redis.call('XADD', outbox, '*', unpack(event))
if changed == 'engaged' then
  redis.call('HSET', brake, 'engaged_at', text)
else
  redis.call('HDEL', brake, 'engaged_at')
end
redis.call('HINCRBY', brake, changed, 1)
return {changed, count.ok, count.failed}
