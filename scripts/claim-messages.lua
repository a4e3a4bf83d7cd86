-- Moves messages into the owner's claimed list and returns all that stands there. To repeat it after a lost reply is safe:
-- what was claimed then is returned again. Control messages fill at most half of the room unless there are few results, and
-- come behind them: a result that has arrived counts before a command that may take away its fence. Of a message that is too
-- large only the first 1,000 bytes are kept, and of either list no more is moved when the bytes are used up.
-- KEYS[1] <queue>-control list   KEYS[2] <queue>-output list   KEYS[3] <queue>:claimed:<owner> list
-- KEYS[4] <queue>:pollers zset, owner -> last sign of life ms
-- ARGV[1] now in Unix ms, "" = the clock of Redis   ARGV[2] owner   ARGV[3] most entries in claimed
-- ARGV[4] largest message in bytes   ARGV[5] bytes in claimed above which nothing is moved from a list
-- Returns {now ms, {claimed entries, oldest first}}; an entry is "c" (control) or "o" (output) before the raw message, or "C" or
-- "O" before the size, a slash, the largest size, a space and the beginning of a message that is too large
local control, output, claimed, pollers = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now, owner, limit, largest = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
if now == '' then
  local time = redis.call('TIME')
  now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
end
local entries, bytes = redis.call('LRANGE', claimed, 0, -1), 0
for _, entry in ipairs(entries) do bytes = bytes + #entry end
redis.call('ZADD', pollers, now, owner)
local room = limit - #entries
local commands = math.min(redis.call('LLEN', control), math.max(math.floor(room / 2), room - redis.call('LLEN', output)))
local function move(from, mark, most)
  local left = tonumber(ARGV[5]) - bytes
  for _ = 1, most do
    local message = left > 0 and redis.call('LPOP', from)
    if not message then return end
    left = left - #message
    local large = #message > largest
    if large then message = #message .. '/' .. largest .. ' ' .. string.sub(message, 1, 1000) end
    entries[#entries + 1] = (large and string.upper(mark) or mark) .. message
    redis.call('RPUSH', claimed, entries[#entries])
  end
end
move(output, 'o', room - math.max(commands, 0))
move(control, 'c', commands)
return {now, entries}
