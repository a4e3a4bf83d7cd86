-- Templates: what items of one shape have in common.
local function numbers_of(text)
  local numbers = {}
  for number in string.gmatch(text, '%d+') do
    numbers[#numbers + 1] = tonumber(number)
  end
  return numbers
end

local function read_line(t, what, head, words)
  local numbers, needed = head ~= '' and numbers_of(head), nil
  if what == 'check' then
    local check = read_step(words, redis.pcall, t)
    check.code, check.wrong, check.how = numbers[1], numbers[2], string.match(head, '%p')
    check.want, check.second, needed = numbers[3], numbers[4], check.unfit
    t.checks[#t.checks + 1] = check
  elseif what == 'fields' then
    t.value = numbers[1]
    for name in string.gmatch(words, '\t=(%C*)') do
      t.names[#t.names + 1] = name
    end
  elseif what == 'unless' then
    t.refuses = run(read_step(words)) and numbers[1] or t.refuses
  elseif what == 'need' then
    needed = unfit[numbers[1]]
  elseif what == 'last' then
    t.finals[#t.finals + 1] = finals[numbers[1]]
  elseif what == 'add' or what == 'try' then
    local group = groups[numbers[1]]
    local idle = absent[group.args[2]] and not joined[group.args[2]] -- nobody is in it
    needed = what == 'add' and group.unfit
    for i = 2, not (group.unfit or idle) and #numbers or 0 do
      t.adds[#t.adds + 1] = group.list
      t.added[#t.added + 1] = numbers[i]
    end
  else
    local step = read_step(words, what == 'do' and redis.call or redis.pcall, t)
    needed = what == 'do' and step.unfit
    step.soft = step.run ~= redis.call -- its reply may be an error
    t.steps[#t.steps + 1] = not step.unfit and step or nil
  end
  t.blocked = t.blocked or needed --@ blocked
  t.refuses = t.blocked and 9 or t.refuses
end

local function read_template(text)
  local t = {
    applied = 0, checks = {}, steps = {}, adds = {}, added = {}, finals = {},
    fills = {}, places = {}, values = {}, key_fills = {}, key_places = {}, keys = {},
    names = {}, value = 0, entry = {},
  }
  for line in string.gmatch(text, '(.-)\n') do
    local what, head, words = string.match(line, '^(%a+) ?(%C*)(.*)$')
    if what == 'item' then
      local size, keys, changes, again = unpack(numbers_of(head), 1, 4)
      t.size, t.count, t.changes, t.again = math.max(1, size), keys, changes == 1, again == 1
    else
      read_line(t, what, head, words)
    end
  end
  t.place, t.last_place, t.further = t.place or 1, t.last_place or 0, t.further or 0
  t.checks = t.blocked and {} or t.checks -- one may ask the key of another type
  return t
end
