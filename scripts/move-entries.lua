-- Moves the entries of a process whose lease has expired to others, in their order, and forgets it when it has none
-- left. Both happen at once, so a process that was only slow learns of it by its next heartbeat. A poller adopts the
-- messages of another behind its own, and forgets the other when it finds none: by then it has applied them. The
-- attempts of a worker pool go back to the head of the input list.
--
-- KEYS[1] its kind, one of <queue>:pollers zset ZADD ZREM ZSCORE, <queue>:workers zset ZADD ZREM ZSCORE, owner -> last
--   heartbeat in Unix ms
-- KEYS[2] its entries, one of <queue>:claimed:<owner> list LLEN LMOVE LREM, <queue>:taken:<owner> list LLEN LMOVE LREM
-- KEYS[3] where they go, one of <queue>:claimed:<owner> list LMOVE-to, <queue>-input list LMOVE-to
-- KEYS[4] <queue>:heard hash HSET, a poller that adopts -> that it holds messages of any age; workers need none
-- ARGV[1] now in Unix ms, "" = the clock of Redis
-- ARGV[2] owner of the entries
-- ARGV[3] its lease in ms: with a heartbeat since then it is alive, but one from the future was given before the clock
--   was set back; "" = it leaves by its own wish
-- ARGV[4] last heartbeat in Unix ms when it was found expired, "" = any
-- ARGV[5] poller that adopts, "" = they go to the head
-- ARGV[6] most entries to move
-- ARGV[7..] entries to drop, because nobody is to work on them any more
-- Returns how many entries were moved; -1: the owner is alive or already forgotten
-- include: clock, types
local processes, entries, target, heard = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now, owner, lease, found = tonumber(clock(ARGV[1])), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local adopter, most = ARGV[5], tonumber(ARGV[6])

-- Check
local wrong = wrong_type(header_types)
if wrong then
  return wrong
end
local seen = tonumber(redis.call('ZSCORE', processes, owner) or '')
local alive = lease and seen and now - lease < seen and seen <= now
if alive or found and found ~= seen or lease and not seen then --@ expired
  return -1
end

-- Write. An adopter that was itself forgotten must be found again.
if adopter ~= '' then
  redis.call('ZADD', processes, 'NX', string.format('%.0f', now - lease), adopter)
end
for i = 7, #ARGV do
  redis.call('LREM', entries, 1, ARGV[i]) --@ drop
end
local moved = math.min(most, redis.call('LLEN', entries))
if adopter ~= '' and moved > 0 then
  redis.pcall('HSET', heard, 'poller ' .. adopter, '0 0') --@ adopted
end
for _ = 1, moved do
  if adopter ~= '' then
    redis.call('LMOVE', entries, target, 'LEFT', 'RIGHT') --@ adopt
  else
    redis.call('LMOVE', entries, target, 'RIGHT', 'LEFT') --@ requeue
  end
end
if redis.call('LLEN', entries) == 0 and (adopter == '' or moved == 0) then --@ forget
  redis.call('ZREM', processes, owner)
end
return moved
