-- Receives commands that another part of the queue has claimed: each once, and in their order. To repeat it is safe,
-- also late and by a former leader: no command is pushed twice.
--
-- KEYS[1] <queue>-control list RPUSH
-- KEYS[2] <queue>:forwarded hash HGET HSET, number of a part -> number of the last command that came from there; and
--   numbered
-- ARGV[1] number of the part that sends
-- ARGV[2..] number and message of each command, the numbers growing
-- Returns how many were pushed
-- include: check
local control, forwarded = KEYS[1], KEYS[2]
local from = ARGV[1]

local last = tonumber(redis.call('HGET', forwarded, from) or 0)

local pushed = 0
for i = 2, #ARGV, 2 do
  if tonumber(ARGV[i]) > last then --@ once
    redis.call('RPUSH', control, ARGV[i + 1])
    pushed = pushed + 1
  end
end
if pushed > 0 then
  redis.call('HSET', forwarded, from, ARGV[#ARGV - 1])
end
return pushed
