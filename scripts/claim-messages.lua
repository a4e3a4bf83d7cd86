-- Claims messages: moves them into claimed lists, and returns all that the owner has there, except the results in hand.
-- It is also the owner's heartbeat. To repeat it after a lost reply is safe: it returns the same messages again.
--
-- Results are claimed by pollers side by side, each into a list of its own. Commands keep their order: they go
-- through one command queue. One poller leads it as long as it lives. The next leader finishes the old commands before
-- it claims more, except in a queue of several parts, where commands may wait for another part. Commands fill at most
-- half of the room (there: of the limit) unless there are few results, and come behind them: a result that has arrived
-- counts before a command that may take away its fence. A message that is too large keeps only its first 1,000 bytes.
-- When the bytes are used up, no more is moved from that list; the last 8 messages, moved together, may exceed them.
--
-- It also notes up to when all messages have been claimed, and up to when the owner has applied his. So dispatchers
-- know which deadlines have passed without a message.
--
-- KEYS[1] <queue>-control list LLEN LPOP
-- KEYS[2] <queue>-output list LLEN LPOP
-- KEYS[3] <queue>:claimed:<owner> list LRANGE RPUSH
-- KEYS[4] <queue>:claimed:control list LLEN LRANGE RPUSH, the command queue
-- KEYS[5] <queue>:holder string GET SET, the leader
-- KEYS[6] <queue>:pollers zset ZADD ZSCORE, owner -> last heartbeat in Unix ms
-- KEYS[7] <queue>:forwarded hash HGET HSET, numbered -> number of the last command that was numbered; and number of a
--   part -> number of the last command that came from there
-- KEYS[8] <queue>:bulks zset ZCARD, id -> since in Unix ms
-- KEYS[9] <queue>:heard hash HDEL HMGET HSET, claimed -> what was pushed to output before is claimed, in Unix ms; mark
--   -> what will be claimed next, in Unix ms, and how many messages are to be claimed until then; and a poller that
--   holds some -> what was pushed before it holds none of, in Unix ms, and the same of the last batch alone
-- ARGV[1] now in Unix ms, "" = the clock of Redis
-- ARGV[2] owner
-- ARGV[3] most entries to return, unless more are claimed already
-- ARGV[4] largest message in bytes
-- ARGV[5] claimed bytes above which nothing more is moved from a list
-- ARGV[6] lease in ms: a leader without a heartbeat for so long leads no longer
-- ARGV[7] 1 = the queue has several parts, "" = it has one
-- ARGV[8] how many results the owner has in hand: the oldest of those that he has claimed
-- ARGV[9] how many of the others he has decided: they wait for a key of the wrong type
-- Returns {now in Unix ms, 1 = the owner leads, 0 = another does, {entries, oldest first: what the owner has claimed,
--   and behind it the command queue if the owner leads}, 1 = it leads and there are bulks, 0 = not, {keys of the
--   wrong type: nothing is claimed from them, and without the keys of commands nobody leads}}. An entry is "o" before
--   the raw message from output; "n", the number and a space before a command; or "C" or "O" before the size, a slash,
--   the largest size, a space and the beginning of a message that is too large
-- include: clock, chunks, read, wrong_types
local control, output, claimed, command_queue = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local leader_key, pollers, forwarded, bulks, heard = KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local now, owner, limit = clock(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local largest, max_bytes, lease = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local several = ARGV[7] == '1'

-- Check. The heartbeat is the first write.
local entries = known(3, redis.pcall('LRANGE', claimed, ARGV[8], -1))
local unfinished = known(4, redis.pcall('LLEN', command_queue))
local waiting, results = known(1, redis.pcall('LLEN', control)), known(2, redis.pcall('LLEN', output)) or 0
local leader, numbered = known(5, redis.pcall('GET', leader_key)), known(7, redis.pcall('HGET', forwarded, 'numbered'))
local wishes = known(8, redis.pcall('ZCARD', bulks))
local noted = known(9, redis.pcall('HMGET', heard, 'claimed', 'mark', 'poller ' .. owner))
local alive = entries and not failure and known(6, redis.pcall('ZADD', pollers, now, owner)) --@ heartbeat
if not alive then
  return failure or redis.error_reply('WRONGTYPE ' .. (wrong_types[3] or wrong_types[6]))
end
local commands_wait = wrong_types[1] or wrong_types[4] or wrong_types[5] or wrong_types[7]

-- A leader that has resigned or is silent leads no longer. A heartbeat ahead of the clock does not count, as the clock
-- has stepped back.
local leads = leader == owner and not commands_wait
if not leads and not commands_wait then
  local silence = now - (leader and redis.call('ZSCORE', pollers, leader) or 0)
  leads = silence >= lease or silence < 0 --@ hold
end
if leads and leader ~= owner then
  redis.call('SET', leader_key, owner) --@ take the lead
end

local commands = leads and unfinished > 0 and redis.call('LRANGE', command_queue, 0, -1) or {} --@ unfinished
local room = math.max(0, limit - #entries - #commands)
local most_commands = 0
if several and leads then
  -- Commands may wait here for another part, and must keep neither results nor other commands from coming.
  most_commands = math.min(waiting, room, math.floor(limit / 2) - #commands)
elseif leads and #commands == 0 then --@ finish first
  most_commands = math.min(waiting, math.max(math.floor(room / 2), room - results))
end

-- claim moves so many messages behind the present entries of another list, until the bytes are used up. It numbers
-- commands on from a number. The first message is popped alone, as it may be huge; then as many at once, up to 8, as
-- the bytes allow if none is larger than before.
local function claim(list, kept_in, present, most, number)
  local left, kept, size, seen = max_bytes, {}, 1, 1
  for _, entry in ipairs(present) do
    left = left - #entry
  end
  while most > 0 and left > 0 do
    local asked = math.min(most, size)
    local messages = redis.call('LPOP', list, asked) or {}
    most = #messages == asked and most - asked or 0
    for _, message in ipairs(messages) do
      left, seen, number = left - #message, math.max(seen, #message), number and number + 1
      local entry = number and string.format('n%.0f ', number) .. message or 'o' .. message
      if #message > largest then
        entry = (number and 'C' or 'O') .. #message .. '/' .. largest .. ' ' .. string.sub(message, 1, 1000)
      end
      kept[#kept + 1] = entry
      present[#present + 1] = entry
    end
    size = math.max(1, math.min(8, math.floor(left / seen)))
  end
  for first, last in chunks(kept) do
    redis.call('RPUSH', kept_in, unpack(kept, first, last)) --@ keep
  end
  return #kept > 0 and number
end
-- include: heard
local claimed_before = #entries
claim(output, claimed, entries, math.min(results, room - math.max(0, most_commands)))
if noted and not wrong_types[2] then
  hear(#entries - claimed_before, math.max(0, claimed_before - tonumber(ARGV[9])))
end
if most_commands > 0 then
  -- Numbers grow with the clock too: a node that has taken over may not know the last ones.
  local number = math.max(tonumber(numbered or 0) or 0, now * 1000) --@ number
  number = claim(control, command_queue, commands, most_commands, number)
  if number then
    redis.call('HSET', forwarded, 'numbered', string.format('%.0f', number))
  end
end
for _, entry in ipairs(commands) do
  entries[#entries + 1] = entry
end
return {now, leads and 1 or 0, entries, leads and wishes and wishes > 0 and 1 or 0, list_of(wrong_types)} --@ replay
