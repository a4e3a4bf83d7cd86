-- Moves messages into the owner's claimed list and returns all that stands there. To repeat it after a lost reply is safe:
-- what was claimed then is returned again. Control messages fill at most half of the room unless there are few results, and
-- come behind them: a result that has arrived counts before a command that may take away its fence.
-- KEYS[1] <queue>-control list   KEYS[2] <queue>-output list   KEYS[3] <queue>:claimed:<owner> list
-- KEYS[4] <queue>:pollers zset, owner -> last sign of life ms
-- ARGV[1] now in Unix ms, "" = the clock of Redis   ARGV[2] owner   ARGV[3] most entries in claimed
-- Returns {now ms, {claimed entries, oldest first}}; an entry is "c" (control) or "o" (output) before the raw message
local control, output, claimed, pollers = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now, owner, limit = ARGV[1], ARGV[2], tonumber(ARGV[3])
if now == '' then
  local time = redis.call('TIME')
  now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
end
redis.call('ZADD', pollers, now, owner)
local room = limit - redis.call('LLEN', claimed)
local commands = math.min(redis.call('LLEN', control), math.max(math.floor(room / 2), room - redis.call('LLEN', output)))
local function move(from, mark, most)
  for _ = 1, most do
    local message = redis.call('LPOP', from)
    if not message then return end
    redis.call('RPUSH', claimed, mark .. message)
  end
end
move(output, 'o', room - math.max(commands, 0))
move(control, 'c', commands)
return {now, redis.call('LRANGE', claimed, 0, -1)}
