-- Items: each is checked, and then its steps run. A call costs as much as ten statements.
-- refuses is the code by which a check refuses the item in hand, or nothing.
local function refuses(check)
  local reply, second = check.run(unpack(check.args, 1, check.n)), check.second
  if second and not reply.err then
    replies = reply -- fingerprints read on
    local differs = (reply[1] or '') ~= ARGV[from + check.want]
    if differs or (reply[2] or '') ~= (second > 0 and ARGV[from + second] or '') then --@ compare
      return check.code
    end
  elseif type(reply) == 'table' then
    note_wrong(check, reply)
    return check.wrong
  elseif check.how == '?' then
    return reply and check.code
  elseif check.how == '<' then
    return tonumber(reply or 0) >= tonumber(ARGV[from + check.want]) and check.code --@ below
  elseif (reply or '') ~= ARGV[from + check.want] then --@ slot
    return check.code
  end
end

-- apply checks the item in hand, runs its steps, and returns its code, with the key that was of another type.
local function apply(t)
  local checks, steps, adds, code = t.checks, t.steps, t.adds, t.blocked and 9
  fault = t.blocked
  if t.again then
    write_groups() -- the last score counts
  end
  -- The values and keys of the item become arguments. Fields are of two steps at most.
  for i = 1, #t.values do
    local fill = t.values[i]
    fill.args[fill.place] = ARGV[from + fill.number]
  end
  for i = 1, #t.keys do
    local fill = t.keys[i]
    fill.args[fill.place] = KEYS[first + fill.number]
  end
  local set, entry, value, further = t.set, t.entry, from + t.value, t.further
  for place = t.place, t.last_place, 2 do
    local text = ARGV[value]
    value = value + 1
    set[place] = text
    entry[place + further] = text
  end
  for i = 1, #checks do
    local refusal = refuses(checks[i]) --@ check
    if refusal then
      code = checks[i].wrong == refusal and refusal or code or refusal -- a key of another type comes first
    end
  end
  if code then
    -- A message that is gone and changes nothing says nothing of its subject.
    refused[subject] = t.changes or code ~= 3 and subject ~= '' or refused[subject] --@ refuse
    return fault and code .. ' ' .. fault or code
  end
  for i = 1, #steps do
    local step = steps[i]
    local args = step.args
    if step.drawn then
      args[step.drawn] = drawn
    end
    local reply = step.run(unpack(args, 1, step.n)) --@ step
    if reply and step.soft and type(reply) == 'table' and reply.err then
      note_wrong(step, reply)
    end
  end
  for i = 1, #adds do
    local add = adds[i]
    local list = add.list
    list[#list + 1] = ARGV[from + add.number] --@ collect
  end
  t.applied = t.applied + 1 --@ applied
  if fault then
    wrong_types[fault] = fault -- it is told at the end
  end
  return 1
end
