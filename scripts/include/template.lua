-- Templates: the common steps of items of one shape. The lines of the batch come first.
local templates, finals = {}, {}
local function read_line(t)
  local head = ARGV[at]
  local word, numbers = sub(head, 1, 1), sub(head, 2)
  if word == 'd' or word == 'h' then
    local step = read_step(word == 'd' and redis.call or redis.pcall, t)
    t.steps[#t.steps + 1] = not step.wrong_type and step or nil
    t.blocked = t.blocked or word == 'd' and step.wrong_type --@ blocked
    return
  elseif wants[word] then
    local step = read_step(redis.pcall, t)
    t.checks[#t.checks + 1] = step
    t.blocked = t.blocked or step.wrong_type --@ checked
    return
  elseif word == 'f' then
    run(read_step(redis.call))
    return
  elseif word == 'g' or word == 'l' then
    local steps, step = word == 'g' and groups or finals, read_step(redis.pcall)
    step.list, step.written, step.applied = {}, 0, 0
    steps[#steps + 1] = step
    return
  end
  at = at + 1
  if word == 'a' or word == 't' then
    local number, one, other = match(numbers, '^(%d+) (%d+) ?(%d*)$')
    local group = groups[tonumber(number)]
    local alone = not t.again and absent[group.args[2]] -- nobody is in it yet
    if not (group.wrong_type or alone and group.args[1] == 'ZREM') then
      note(t.adds, group.list, tonumber(one), tonumber(other) or 0)
    end
    t.blocked = t.blocked or word == 'a' and group.wrong_type
  elseif word == 'b' then
    t.finals[#t.finals + 1] = finals[tonumber(numbers)]
  elseif word == 's' then
    t.again = true
  else
    local size, count, changes, types_of = match(numbers, '^(%d+) (%d+) (%d)(.*)$')
    t.size, t.count, t.changes, t.kinds = math.max(1, tonumber(size)), tonumber(count), changes == '1', types_of
  end
  return word == 'i'
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

-- last runs a command or verb behind all items.
function verbs.last(name, ...)
  local args = verbs[name] and {...} or {name, ...}
  finals[#finals + 1] = {run = verbs[name] or redis.pcall, args = args, n = math.min(#args, 1000), applied = 1}
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
