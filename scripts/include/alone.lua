-- Alone: an item without a template begins with a line such as "i39 1 1 hash", where 39 is how many arguments it has,
-- and its subject. Its lines follow, whose words are in place but for a drawn one, the place of which stands behind the
-- number of words. They run as they are read: to keep them would cost more.
local function run_alone()
  local size, count, changes, types_of = match(ARGV[at], '^i(%d+) (%d+) (%d)(.*)$')
  local stop, code = at + math.max(2, tonumber(size)), nil
  first, subject, kinds, fault = next_key, ARGV[at + 1], types_of, nil
  next_key = next_key + tonumber(count)
  write_groups() -- an item before may have added its subject
  local at = at + 2 -- luacheck: ignore 431 (it is read faster)
  while at < stop do
    local head, verb = ARGV[at], verbs[ARGV[at + 1]]
    local how, before = sub(head, 1, 1), verb and 1 or 0
    local high, low, one, two = byte(head, 2, 5)
    local words, behind = (high * 64 + low - 3120) % 1001, wants[how]
    if code and not behind then
      break -- the other checks may have found a key of the wrong type
    end
    local command, args, reply = verb or how == 'd' and redis.call or redis.pcall, nil
    if one and not behind then
      args = {unpack(ARGV, at + 1 + before, at + words)}
      args[one * 64 + two - 3120 - before] = drawn
      reply = command(unpack(args, 1, math.min(#args, 1000)))
    else
      reply = command(unpack(ARGV, at + 1 + before, at + words)) --@ alone
    end
    local want = at + words + 1
    if type(reply) == 'table' and reply.err then
      note_wrong(args or {unpack(ARGV, at + 1 + before, at + words)}, reply)
      code = behind and two - 48 or code
    elseif behind then
      code = code or refuses(how, one - 48, reply, ARGV[want], ARGV[want + 1]) --@ check alone
    end
    at = want + (behind or 0)
  end
  note_code(code, changes == '1')
  return stop
end
