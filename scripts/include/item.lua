-- Items: each is checked, and then its steps run. A call costs as much as ten statements.
-- refuses is the code by which a check refuses the item in hand, or nothing.
local function refuses(check)
  local reply, how, second = check.run(unpack(check.args, 1, check.n)), check.how, check.second
  if second and not reply.err then
    replies = reply -- fingerprints read on
  elseif type(reply) == 'table' then
    note_wrong(check, reply)
    return check.wrong
  end
  if how == '?' then
    return reply and check.code
  elseif how == '<' then
    return tonumber(reply or 0) >= tonumber(ARGV[from + check.want]) and check.code --@ below
  elseif refused[subject] then --@ refused before
    return check.code
  end
  local is = second and reply or {reply}
  local differs = (is[1] or '') ~= ARGV[from + check.want]
  if differs or second and (is[2] or '') ~= (second > 0 and ARGV[from + second] or '') then --@ compare
    return check.code
  end
end

-- answer is the code of an item, with the key that was of another type. What was left out is told at the end.
local function answer(code)
  if fault and code ~= 1 then
    return code .. ' ' .. fault
  elseif fault then
    unfit[fault] = fault
  end
  return code
end

-- apply checks the item in hand, runs its steps, and returns its code.
local function apply(t)
  local checks, steps, adds, added, code = t.checks, t.steps, t.adds, t.added, t.refuses
  fault = t.blocked
  if seen[subject] then --@ more than one
    write_groups() -- the last score counts
  end
  -- The values and keys of the item become arguments. Fields are of two steps at most.
  local item, fills, places, values = from, t.fills, t.places, t.values
  for i = 1, #fills do
    fills[i][places[i]] = ARGV[item + values[i]]
  end
  local first_of, first_place, second, second_place = t.first, t.first_place, t.second, t.second_place
  for i = item + t.value, item + t.value + #t.names - 1 do
    local value = ARGV[i]
    first_place, second_place = first_place + 2, second_place + 2
    first_of[first_place], second[second_place] = value, value
  end
  fills, places, values, item = t.key_fills, t.key_places, t.keys, first
  for i = 1, #fills do
    fills[i][places[i]] = KEYS[item + values[i]]
  end
  for i = 1, t.blocked and 0 or #checks do -- a check may ask the key of another type
    local refusal = refuses(checks[i]) --@ check
    if refusal then
      code = checks[i].wrong == refusal and refusal or code or refusal -- a key of another type comes first
    end
  end
  if code then
    -- A message that is gone and changes nothing says nothing of its subject.
    refused[subject] = t.changes or code ~= 3 and subject ~= '' or refused[subject] --@ refuse
    return answer(code)
  end
  for i = 1, #steps do
    local step = steps[i]
    local args = step.args
    if step.drawn then
      args[step.drawn] = drawn
    end
    local reply = step.run(unpack(args, 1, step.n)) --@ step
    if step.soft and type(reply) == 'table' and reply.err then
      note_wrong(step, reply)
    end
  end
  for i = 1, #adds do
    local list = adds[i]
    list[#list + 1] = ARGV[from + added[i]] --@ collect
  end
  seen[subject] = adds[1] or seen[subject]
  t.applied = t.applied + 1 --@ applied
  return fault and answer(1) or 1
end
