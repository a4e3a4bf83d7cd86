-- Changes what operators set in a queue, unless any of that has changed since it was read. A change that a command asks
-- for comes in the order of the commands, and once. So a request that arrives late, or again, undoes nothing.
--
-- KEYS[1] the setting, one of <queue>:holds hash HDEL HINCRBY HSET, <queue>:limits hash HDEL HINCRBY HSET,
--   <queue>:calendars hash HDEL HINCRBY HSET, <queue>:policies hash HDEL HINCRBY HSET, <queue>:circuit:queue hash HDEL
--   HINCRBY HSET, <queue>:orders hash HDEL HINCRBY HSET
-- KEYS[2] <queue>:gates zset ZADD, blocker -> when a dispatcher rechecks it, in Unix ms
-- KEYS[3] <queue>:forwarded hash HGET HINCRBY HSET, changes -> how many there were; and the field of a part -> number
--   of the last command from there that was carried out here, and 1 = it has changed something, 2 = it has not
-- KEYS[4] <queue>:bulks zset ZADD, id -> since in Unix ms, of those that are not over
-- KEYS[5] <queue>:bulks_ended zset ZREM, id -> when it ended in Unix ms, of those that were over within a day
-- KEYS[6] <queue>:bulk:<name> hash DEL HSET, the bulk that begins
-- KEYS[7] one of <queue>:deeds stream XADD, <queue>:journal stream XADD: this if nobody is to be named
-- ARGV[1] how many changes there were when it was read, "" = none
-- ARGV[2] field of the part from which the command comes, "" = no command asks for it
-- ARGV[3] number of the command
-- ARGV[4] blocker that the change opens or closes, "" = none
-- ARGV[5] when a dispatcher rechecks it, in Unix ms
-- ARGV[6] "1" = it is a hold: it is counted, and rechecked even if no model waits, "" = it is not
-- ARGV[7] id of the bulk that begins, anew if there was one, "" = none
-- ARGV[8] since when it goes on, in Unix ms
-- ARGV[9] how many fields are changed; the fields of the bulk follow
-- ARGV[10] what is done, for the deeds, see include/deed.lua, "" = nobody is to be named
-- ARGV[11..] fields, each before its value: "" = it goes
-- Returns 1: it was changed, also if this command did it before; 2: there was nothing to change, or a later command has
--   come before; 0: something has changed since it was read
-- include: check, fields, deed
local set, blockers, forwarded, bulks, ended, bulk = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local changes, part, number, blocker, recheck_at, hold = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local id, since, fields, deeds, deed = ARGV[7], ARGV[8], tonumber(ARGV[9]), KEYS[7], ARGV[10]

-- Check
if part ~= '' then
  local last, code = string.match(redis.call('HGET', forwarded, part) or '', '^(%d+) (%d)$')
  if last == number then --@ once
    return tonumber(code)
  end
  if last and tonumber(number) < tonumber(last) then --@ in order
    return 2
  end
end
if (redis.call('HGET', forwarded, 'changes') or '') ~= changes then --@ changed since
  return 0
end

-- Write
local behind = 11 + 2 * fields
local code = (fields > 0 or id ~= '') and 1 or 2
if part ~= '' then
  redis.call('HSET', forwarded, part, number .. ' ' .. code) --@ carried out
end
if code == 2 then
  return 2
end
redis.call('HINCRBY', forwarded, 'changes', 1) --@ change
write_deed(deeds, deed)
set_fields(set, 11, behind - 1)
if hold ~= '' then
  redis.call('HINCRBY', set, 'changes', 1)
  redis.call('ZADD', blockers, recheck_at, blocker)
elseif blocker ~= '' then
  redis.call('ZADD', blockers, 'XX', recheck_at, blocker)
end
if id ~= '' then
  redis.call('DEL', bulk)
  redis.call('ZADD', bulks, since, id)
  redis.call('ZREM', ended, id)
end
set_fields(bulk, behind, #ARGV)
return 1
