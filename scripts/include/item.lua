-- Items: each is checked, and then written. Most statements stand in one function, as a call costs as much as ten.

-- apply applies the item in hand, and returns its code.
local function apply(kind)
  local value_at, from, first, uid, hash = kind.value_at, at, next_key, ARGV[at + 1], KEYS[next_key]
  local message = value_at.message and ARGV[from + value_at.message]
  local push = not kind.back and value_at.push and ARGV[from + value_at.push]
  kind.from, kind.first, kind.uid, kind.fault = from, first, uid, kind.blocked
  at, next_key = from + kind.size, first + kind.keys
  for i = 1, #kind.lists do
    kind[kind.lists[i]] = take_list()
  end

  local code, is, differs = nil, nil, refused[uid]
  if kind.rev then
    local rev, attempt = ARGV[from + value_at.rev], kind.attempt and ARGV[from + value_at.attempt] or ''
    is = kind.sorts and redis.pcall('HMGET', hash, 'rev', 'attempt_uid', 'error')
      or redis.pcall('HMGET', hash, 'rev', 'attempt_uid')
    differs = differs or (is[1] or '') ~= rev or (is[2] or '') ~= attempt or held and kind.fenced --@ fence
  end
  if is and is.err then
    code = 6
    is_wrong(kind, is, first, 'hash')
  elseif kind.blocked then
    code = 9
  elseif message and not is_claimed(message) then --@ gone
    code = 3
  elseif kind.id and is_known(kind) then --@ id is looked for
    code = 7
  elseif differs then
    code = 2
  elseif kind.must and kind.back and not find_entry(value_of(kind, 'back')) then --@ taken
    code = 4
  elseif push and queued >= max_queued then --@ full
    code = 5
  end
  for i = 1, #kind.checks do
    code = code or kind.checks[i](kind)
  end
  if code then
    -- A message that is gone and changes no model says nothing of its model.
    refused[uid] = uid ~= '' and not (kind.settle and code == 3) or refused[uid] --@ refuse
    return answer(kind, code)
  end

  local set, gone, entry, own = kind.set, kind.gone, kind.entry, nil
  local place, told = 0, 6
  if kind.next then
    place, set[2] = 2, ARGV[from + value_at.next]
  end
  for i = from + kind.notes_at, from + kind.fields_at - 1 do
    told = told + 2
    entry[told] = ARGV[i]
  end
  for i = from + kind.fields_at, from + kind.size - 1 do
    local value = ARGV[i]
    place, told = place + 2, told + 2
    set[place], entry[told] = value, value
  end
  entry[4] = uid
  if kind.ticket then
    tickets = tickets + 1 --@ ticket
    own = string.format('%d', unfit[10] and 0 or tickets)
  elseif kind.fingerprint then
    own = sort_failure(kind, is[3])
  elseif kind.recovers then
    sort_recovery(kind, is[3]) --@ sort
  end
  if own then
    set[#set], entry[#entry] = own, own
  end
  if #set > 0 then
    redis.call('HSET', hash, unpack(set, 1, math.min(#set, 1000))) --@ fields
  end
  if #gone > 0 then
    redis.call('HDEL', hash, unpack(gone, 1, math.min(#gone, 1000))) --@ delete fields
  end
  if kind.rev then
    write_index(kind)
  end
  for i = 1, #kind.effects do
    kind.effects[i](kind)
  end
  if message then
    drop(message) --@ settled is removed
  end
  if push then
    pushed[#pushed + 1] = push --@ push
    queued = queued + 1
  end
  if kind.event and journal_cap > 0 then
    write_entry(entry)
  end
  wakes = wakes or kind.wake --@ call
  kind.applied = kind.applied + 1 --@ applied is counted
  code = 1
  return kind.fault and answer(kind, code) or code
end
