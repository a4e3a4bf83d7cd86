-- Moves entries that a worker pool does not begin with from its taken list to the tail of the input list. One that does
-- not stand there was put back before, or was requeued. They were taken last, so they are looked for from the end. It
-- only moves: a user who may run this can make up no entry.
--
-- KEYS[1] <queue>:taken:<owner> list
-- KEYS[2] <queue>-input list
-- ARGV[1..] entries, newest first; the oldest is the first to be taken again
-- Returns how many were moved
-- include: check
local taken, input = KEYS[1], KEYS[2]

local moved = 0
for i = 1, #ARGV do
  local at = redis.call('LPOS', taken, ARGV[i], 'RANK', -1)
  if at then --@ put back
    local behind = redis.call('LLEN', taken) - at - 1
    for _ = at + 2, redis.call('LLEN', taken) do --@ turn
      redis.call('LMOVE', taken, taken, 'RIGHT', 'LEFT')
    end
    redis.call('LMOVE', taken, input, 'RIGHT', 'LEFT')
    for _ = 1, behind do
      redis.call('LMOVE', taken, taken, 'LEFT', 'RIGHT') --@ turn back
    end
    moved = moved + 1
  end
end
for _ = 1, moved do
  redis.call('LMOVE', input, input, 'LEFT', 'RIGHT') --@ tail
end
return moved
