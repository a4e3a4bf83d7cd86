-- Templates: what items of one shape have in common. A line that several have stands for one step.
local templates, firsts, groups, finals = {}, {}, {}, {}
local function shared(steps, words, command)
  local step = steps[words]
  if not step then
    step = read_step(words, command)
    step.list, step.written, step.applied = {}, 0, 0
    steps[words], steps[#steps + 1] = step, step
  end
  return step
end

local function read_line(t, what, head, words)
  local numbers, step = {}, nil
  for number in string.gmatch(head, '%d+') do
    numbers[#numbers + 1] = tonumber(number)
  end
  if what == 'again' then
    t.again = true
  elseif what == 'first' then
    if not firsts[words] then
      firsts[words] = true
      run(read_step(words, redis.call))
    end
  elseif what == 'check' then
    step = read_step(words, redis.pcall, t)
    step.code, step.wrong, step.how = numbers[1], numbers[2], string.match(head, '%p')
    step.want, step.second = numbers[3], numbers[4]
    t.checks[#t.checks + 1] = step
  elseif what == 'fields' then
    t.value = numbers[1]
    for name in string.gmatch(words, '\t=(%C*)') do
      t.names[#t.names + 1] = name
    end
  elseif what == 'add' or what == 'try' then
    local group = shared(groups, words, redis.call)
    local alone = not t.again and absent[group.args[2]] -- nobody is in it yet
    local idle = group.wrong_type or alone and group.args[1] == 'ZREM'
    for i = 1, idle and 0 or #numbers do
      t.adds[#t.adds + 1] = {list = group.list, number = numbers[i]}
    end
    step = what == 'add' and group
  elseif what == 'last' then
    t.finals[#t.finals + 1] = shared(finals, words, redis.pcall)
  elseif what == 'item' then
    t.size, t.count, t.changes = math.max(1, numbers[1]), numbers[2], numbers[3] == 1
  else
    step = read_step(words, what == 'do' and redis.call or redis.pcall, t)
    step.soft = step.run ~= redis.call -- its reply may be an error
    t.steps[#t.steps + 1] = not step.wrong_type and step or nil
    step = what == 'do' and step
  end
  t.blocked = t.blocked or step and step.wrong_type --@ blocked
end

local function new_template()
  return {
    applied = 0, checks = {}, steps = {}, adds = {}, finals = {},
    values = {}, keys = {}, names = {}, value = 0, entry = {},
  }
end

local template = new_template()
for what, head, words in string.gmatch(ARGV[4], '(%l+) ?(%C*)(.-)\n') do
  read_line(template, what, head, words)
  if what == 'item' then
    template.checks = template.blocked and {} or template.checks -- one may ask the key of another type
    template.place, template.last_place = template.place or 1, template.last_place or 0
    templates[#templates + 1] = template
    template = new_template()
  end
end

-- write_groups writes what the items of the batch have added.
local function write_groups()
  for _, group in ipairs(groups) do
    local list = group.list
    for first_of, last_of in chunks(list, group.written) do
      redis.call(group.args[1], group.args[2], unpack(list, first_of, last_of)) --@ group
    end
    group.written = #list
  end
end
