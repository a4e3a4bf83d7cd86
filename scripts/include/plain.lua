-- Plain items are almost all: of a model its hash, its history, its scores and its fingerprint change, and nothing
-- else. They are applied by straight statements. What refuses one of them is left to the statements for all items,
-- which tell why.
local is_plain = {}
for _, word in ipairs({
  'message', 'rev', 'attempt', 'push', 'history', 'keys', 'ticket', 'fenced', 'wake', 'event', 'note', 'field', 'now',
  'gone', 'left', 'count', 'due', 'running', 'urgent', 'failing', 'disabled', 'stale_at', 'late', 'stale',
  'fingerprint', 'recovers',
}) do
  is_plain[word] = true
end
for _, kind in ipairs(kinds) do
  kind.plain = kind.rev and #kind.set > 0 and not next(unfit) --@ plain
  for word in pairs(kind.said) do
    kind.plain = kind.plain and is_plain[word]
  end
end

-- apply_plain applies the item in hand, and returns nothing if something refuses it. It calls few functions: a call
-- costs as much as ten statements.
local function apply_plain(kind)
  local value_at, changed, uid, hash = kind.value_at, kind.indexes, ARGV[at + 1], KEYS[next_key]
  local message = value_at.message and ARGV[at + value_at.message]
  local attempt = value_at.attempt and ARGV[at + value_at.attempt] or false
  local push = value_at.push and ARGV[at + value_at.push]
  local fails = kind.fingerprint or kind.recovers
  local is = fails and redis.pcall('HMGET', hash, 'rev', 'attempt_uid', 'error')
    or redis.pcall('HMGET', hash, 'rev', 'attempt_uid')
  local refuses = is[1] ~= ARGV[at + value_at.rev] or is[2] ~= attempt --@ plain fence
  refuses = refuses or refused[uid] --@ plain refused
  refuses = refuses or held and kind.fenced --@ plain hold
  refuses = refuses or push and queued >= max_queued --@ plain full
  refuses = refuses or message and (in_claimed or results[done + 1] ~= message) --@ plain message
  if refuses or seen[uid] then --@ plain seen
    return nil
  end
  seen[uid] = true
  for i = 1, #changed do
    local place = value_at[changed[i].word]
    score_in(changed[i], uid, place and ARGV[at + place] or '') --@ plain score
  end
  kind.uid, kind.first, kind.fault = uid, next_key, nil
  kind.history = value_at.history and ARGV[at + value_at.history]
  kind.is_error = is[3] or nil
  at, next_key = at + 2 + #kind.values, next_key + kind.keys
  if kind.fingerprint then
    at = at - 1 -- it is the last of the values, and a list
    kind.fingerprint = take_list()
  end
  fill(kind)
  if fails then --@ plain error
    write_fingerprint(kind)
  end
  if kind.ticket then
    draw_ticket(kind)
  end
  local set, delete = kind.set, kind.delete
  redis.call('HSET', hash, unpack(set, 1, math.min(#set, 1000))) --@ plain hash
  if #delete > 0 then
    redis.call('HDEL', hash, unpack(delete, 1, math.min(#delete, 1000))) --@ plain fields
  end
  if kind.history then
    write_history(kind) --@ plain history
  end
  if kind.event and journal_cap > 0 then
    write_entry(kind.entry) --@ plain journal
  end
  if message then
    done = done + 1 --@ plain claimed
  end
  if push then
    pushed[#pushed + 1] = push --@ plain push
    queued = queued + 1
  end
  wakes = wakes or kind.wake --@ plain call
  kind.applied = kind.applied + 1 --@ plain count
  return kind.fault and answer(kind, 1) or 1
end
