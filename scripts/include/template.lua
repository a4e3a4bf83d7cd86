-- Templates: the common steps of items of one shape. The lines of the batch come first.
local templates, finals = {}, {}
local function read_line(t)
  local word, numbers = ARGV[at], ARGV[at + 1]
  at = at + 1
  if word == 'do' or word == 'help' then
    local step = read_step(word == 'do' and redis.call or redis.pcall, t)
    step.soft = step.run ~= redis.call -- its reply may be an error
    t.steps[#t.steps + 1] = not step.wrong_type and step or nil
    t.blocked = t.blocked or word == 'do' and step.wrong_type --@ blocked
    return
  end
  if word == 'first' then
    run(read_step(redis.call))
    return
  end
  if word == 'group' or word == 'final' then
    local steps, step = word == 'group' and groups or finals, read_step(redis.pcall)
    step.list, step.written, step.applied = {}, 0, 0
    steps[#steps + 1] = step
    return
  end
  at = at + 1
  if word == 'check' then
    local step = read_step(redis.pcall, t)
    local code, wrong, how, want, second = match(numbers, '^(%d+) (%d+) (%p) ?(%d*) ?(%d*)$')
    step.code, step.wrong, step.how = tonumber(code), tonumber(wrong), how
    step.want, step.second = tonumber(want), tonumber(second)
    t.checks[#t.checks + 1] = step
    t.blocked = t.blocked or step.wrong_type --@ checked
  elseif word == 'add' or word == 'try' then
    local number, one, other = match(numbers, '^(%d+) (%d+) ?(%d*)$')
    local group = groups[tonumber(number)]
    local alone = not t.again and absent[group.args[2]] -- nobody is in it yet
    if not (group.wrong_type or alone and group.args[1] == 'ZREM') then
      note(t.adds, group.list, tonumber(one), tonumber(other) or 0)
    end
    t.blocked = t.blocked or word == 'add' and group.wrong_type
  elseif word == 'last' then
    t.finals[#t.finals + 1] = finals[tonumber(numbers)]
  elseif word == 'again' then
    t.again = true
  else
    local size, count, changes, types_of = match(numbers, '^(%d+) (%d+) (%d)(.*)$')
    t.size, t.count, t.changes, t.kinds = math.max(1, tonumber(size)), tonumber(count), changes == '1', types_of
  end
  return word == 'item'
end

local function new_template()
  return {applied = 0, checks = {}, steps = {}, adds = {}, finals = {}, values = {}, keys = {}}
end

local template, first_item = new_template(), at + tonumber(ARGV[4])
while at < first_item do
  if read_line(template) then
    template.checks = template.blocked and {} or template.checks -- one may ask the key of the wrong type
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
