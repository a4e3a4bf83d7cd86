-- Requeues rejected messages: moves each back to the tail of its list, as its sender wrote it. If one is not kept any
-- more, somebody else has requeued or dropped it, and nothing happens. The id of a command is forgotten: it was
-- refused, and is handled now.
--
-- KEYS[1] <queue>:rejected list LREM
-- KEYS[2] <queue>-output list RPUSH
-- KEYS[3] <queue>-control list RPUSH
-- KEYS[4] <queue>:commands zset ZREM, id of a command -> when it was handled in Unix ms
-- KEYS[5] one of <queue>:deeds stream XADD, <queue>:journal stream XADD: this if nobody is to be named
-- ARGV[1] what is done, for the deeds, see include/deed.lua, "" = nobody is to be named
-- ARGV[2..] per message its entry, "1" = it is a command, "" = a result, the message, and the id of the command, "" =
--   none
-- Returns how many were moved
-- include: check, deed
local rejected, output, control, commands, deeds = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]

-- Write
local moved = 0
for i = 2, #ARGV, 4 do
  if redis.call('LREM', rejected, 1, ARGV[i]) == 1 then
    if ARGV[i + 1] == '1' then
      redis.call('RPUSH', control, ARGV[i + 2])
      redis.call('ZREM', commands, ARGV[i + 3])
    else
      redis.call('RPUSH', output, ARGV[i + 2])
    end
    moved = moved + 1
  end
end
write_deed(deeds, ARGV[1], moved)
return moved
