-- Templates: the common steps of items of one shape. The lines of the batch come first.
local templates, groups, finals = {}, {}, {}
local function read_line(t, word, head, words)
  local numbers, step = {}, nil
  for number in string.gmatch(head, '%d+') do
    numbers[#numbers + 1] = tonumber(number)
  end
  if word == 'again' then
    t.again = true
  elseif word == 'first' then
    run(read_step(words, redis.call))
  elseif word == 'group' or word == 'final' then
    local steps, once = word == 'group' and groups or finals, read_step(words, redis.pcall)
    once.list, once.written, once.applied = {}, 0, 0
    steps[#steps + 1] = once
  elseif word == 'check' then
    step = read_step(words, redis.pcall, t)
    step.code, step.wrong, step.how = numbers[1], numbers[2], string.match(head, '%p')
    step.want, step.second = numbers[3], numbers[4]
    t.checks[#t.checks + 1] = step
  elseif word == 'fields' then
    t.value = numbers[1]
    for name in string.gmatch(words, '\t=(%C*)') do
      t.names[#t.names + 1] = name
    end
  elseif word == 'add' or word == 'try' then
    local group = groups[numbers[1]]
    local alone = not t.again and absent[group.args[2]] -- nobody is in it yet
    local idle = group.wrong_type or alone and group.args[1] == 'ZREM'
    for i = 2, idle and 0 or #numbers do
      t.adds[#t.adds + 1] = {list = group.list, number = numbers[i]}
    end
    step = word == 'add' and group
  elseif word == 'last' then
    t.finals[#t.finals + 1] = finals[numbers[1]]
  elseif word == 'item' then
    t.size, t.count, t.changes = math.max(1, numbers[1]), numbers[2], numbers[3] == 1
  else
    step = read_step(words, word == 'do' and redis.call or redis.pcall, t)
    step.soft = step.run ~= redis.call -- its reply may be an error
    t.steps[#t.steps + 1] = not step.wrong_type and step or nil
    step = word == 'do' and step
  end
  t.blocked = t.blocked or step and step.wrong_type --@ blocked
end

local function new_template()
  return {
    applied = 0, checks = {}, steps = {}, adds = {}, finals = {},
    values = {}, keys = {}, names = {}, value = 0, entry = {},
  }
end

local template, begin = new_template(), 1
local stop = string.find(ARGV[4], '\n', begin, true)
while stop do
  local line = string.sub(ARGV[4], begin, stop - 1)
  local word, head = string.match(line, '^(%l+) ?(%C*)')
  if word then
    read_line(template, word, head, line)
  end
  if word == 'item' then
    template.checks = template.blocked and {} or template.checks -- one may ask the key of the wrong type
    template.place, template.last_place = template.place or 1, template.last_place or 0
    templates[#templates + 1] = template
    template = new_template()
  end
  begin = stop + 1
  stop = string.find(ARGV[4], '\n', begin, true)
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
