-- Moves messages into the owner's claimed list and returns all that stands there. To repeat it after a lost reply is
-- safe: what was claimed then is returned again. Commands fill at most half of the room unless there are few results,
-- and come behind them: a result that has arrived counts before a command that may take away its fence. Of a message
-- that is too large only the first 1,000 bytes are kept. Of either list no more is moved when the bytes are used up.
--
-- KEYS[1] <queue>-control list
-- KEYS[2] <queue>-output list
-- KEYS[3] <queue>:claimed:<owner> list
-- KEYS[4] <queue>:pollers zset, owner -> last heartbeat in Unix ms
-- ARGV[1] now in Unix ms, "" = the clock of Redis
-- ARGV[2] owner
-- ARGV[3] most entries in claimed
-- ARGV[4] largest message in bytes
-- ARGV[5] bytes in claimed above which nothing is moved from a list
-- Returns {now in Unix ms, {claimed entries, oldest first}}. An entry is "c" (control) or "o" (output) before the raw
--   message, or "C" or "O" before the size, a slash, the largest size, a space and the beginning of a message that is
--   too large
-- include: clock
local control, output, claimed, pollers = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now, owner, limit = clock(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local largest, max_bytes = tonumber(ARGV[4]), tonumber(ARGV[5])

local entries = redis.call('LRANGE', claimed, 0, -1)
local bytes = 0
for _, entry in ipairs(entries) do
  bytes = bytes + #entry
end
redis.call('ZADD', pollers, now, owner) --@ heartbeat

local room = limit - #entries
local results = redis.call('LLEN', output)
local commands = math.min(redis.call('LLEN', control), math.max(math.floor(room / 2), room - results))

-- keep appends a message to the claimed list.
local function keep(mark, message)
  if #message > largest then
    mark = string.upper(mark)
    message = #message .. '/' .. largest .. ' ' .. string.sub(message, 1, 1000)
  end
  entries[#entries + 1] = mark .. message
  redis.call('RPUSH', claimed, entries[#entries]) --@ keep
end

local left = max_bytes - bytes
for _ = 1, room - math.max(commands, 0) do
  local message = left > 0 and redis.call('LPOP', output)
  if not message then
    break
  end
  left = left - #message
  keep('o', message)
end
left = max_bytes - bytes
for _ = 1, commands do
  local message = left > 0 and redis.call('LPOP', control)
  if not message then
    break
  end
  left = left - #message
  keep('c', message)
end
return {now, entries} --@ replay
