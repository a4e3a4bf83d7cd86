-- Applies a batch of items in order. An item is compares, conditions and Redis commands that Go has decided, grouped
-- into templates: an item names its template and gives its values. A check that fails refuses its item, which then
-- changes nothing, and the later items about the same subject, which were decided on top of it. Only what depends on
-- a reply is decided here, by verbs.
--
-- KEYS[1..] those of the batch, which is asked for their types, and then those that each item brings:
--   <queue>:due zset ZADD ZREM ZSCORE, <queue>:running zset ZADD ZREM ZSCORE, <queue>:urgent zset ZADD ZREM ZSCORE,
--   <queue>:failing zset ZADD ZREM ZSCORE, <queue>:disabled zset ZADD ZREM ZSCORE, <queue>:parked zset ZADD ZREM ZSCORE,
--   <queue>:stale_at zset ZADD ZREM ZSCORE, <queue>:late zset ZADD ZREM ZSCORE, <queue>:stale zset ZADD ZREM ZSCORE,
--   <queue>-input list LLEN LPOS LREM LSET RPUSH, <queue>:claimed:<owner> list LRANGE LREM LTRIM,
--   <queue>:claimed:control list LRANGE LREM, <queue>:holder string GET, <queue>:rejected list LTRIM RPUSH,
--   <queue>:journal stream XADD XTRIM, <queue>:outbox stream XADD, <queue>:stats hash HGET HINCRBY,
--   <queue>:wake list LLEN RPUSH, <queue>:policies hash HSETNX, <queue>:policy_uses hash HSET,
--   <queue>:commands zset ZADD ZCOUNT ZREMRANGEBYRANK ZSCORE, <queue>:gates zset ZADD ZSCORE, <queue>:holds hash HGET,
--   <queue>:errors zset ZCARD ZINCRBY ZREM ZSCORE, <queue>:past_errors zset EXPIRE ZADD ZCARD ZREM ZREMRANGEBYSCORE,
--   <queue>:model:<uid> hash DEL HDEL HMGET HSET ZSCORE, <queue>:history:<uid> list DEL LPUSH LSET LTRIM ZSCORE,
--   <queue>:payload:<uid> string DEL SET ZSCORE, <queue>:reply:<name> list EXPIRE LTRIM RPUSH,
--   <queue>:limit:<name> zset ZADD ZCARD ZREM ZSCORE, <queue>:rate:<name> string GET SET,
--   <queue>:circuit:<key> hash EXPIRE HDEL HINCRBY HMGET HSET, <queue>:label:<name> set SADD SREM,
--   <queue>:parked:<name> zset ZADD ZREM ZSCORE, <queue>:error:<name> hash DEL EXPIRE HGET HINCRBY HSET HSETNX PERSIST,
--   <queue>:logs list LTRIM RPUSH
-- ARGV[1] the instant of the batch in RFC 3339
-- ARGV[2] the same in Unix ms
-- ARGV[3] the types of the keys of the batch, which are the first ones; behind "!": nothing is done if it is another
-- ARGV[4..] the lines that run first, the groups, the lines that run last, the templates, and the items. Before lines,
--   groups and templates stands how many there are, and each line is a list behind its length. step.lua explains the
--   words of a line. A template is how many values and keys an item has, and its lines. An item is the number of its
--   template, its subject and its other values
-- Returns a code per item: 1 applied, 2 conflict (the model has changed), 3 gone (the message is not claimed, or is a
--   command and the owner has lost the command queue), 4 taken (the entry that must be queued is not), 5 full (input),
--   6 broken (the model is no hash), 7 duplicate (a command with that id was handled within a day), 8 limited (a key
--   has no room for the start, or its slot is taken), 9 blocked (another key that it needs is of another type). Behind
--   a space stands which key was of another type; and behind the codes a list of those that only help
-- include: types, misfits, chunks, batch, step
local groups, lasts, templates = {}, {}, {}
local refused, seen = {}, {} -- subjects: of refused items; of those that wait in a group
local replies = {} -- to the compare of the item in hand

-- include: message, input, list, command, limit, streams, circuit_turn, circuit, failure_group, fingerprint, subject

-- read_check reads a line that may refuse an item.
local function read_check(line)
  local count = math.min(tonumber(line[5]), #line)
  local check = {args = {}, keys = {}, types = {}, key_places = {}}
  if line[6 + count] then
    check = read_step(line, 6 + count)
  end
  check.code, check.wrong, check.how = tonumber(line[2]), tonumber(line[3]), line[4]
  check.texts, check.numbers, check.count = {}, {}, count
  for i = 1, count do
    local mark, text = string.sub(line[5 + i], 1, 1), string.sub(line[5 + i], 2)
    check.texts[i], check.numbers[i] = text, mark == '$' and tonumber(text)
  end
  check.run = check.n and (check.run or redis.pcall)
  return check
end

local function read_line(t, line)
  local what, number = line[1], tonumber(line[2])
  if what == 'check' then
    local check = read_check(line)
    table.insert(t.checks, check)
    t.blocked = t.blocked or check.unfit --@ blocked
  elseif what == 'need' then
    t.blocked = t.blocked or unfit[number]
  elseif what == 'last' then
    table.insert(t.lasts, lasts[number])
  elseif what == 'add' or what == 'try' then
    local group, values = groups[number], {}
    for i = 3, #line do
      values[i - 2] = tonumber(line[i])
    end
    t.blocked = t.blocked or what == 'add' and group.unfit
    table.insert(t.adds, not group.unfit and {list = group.list, values = values} or nil)
  else
    local step = read_step(line, 2)
    step.run = step.run or what == 'do' and redis.call or redis.pcall
    t.blocked = t.blocked or what == 'do' and step.unfit
    table.insert(t.steps, not step.unfit and step or nil)
  end
end

local function write_groups()
  for _, group in ipairs(groups) do
    local list = group.list
    for first_of, last_of in chunks(list) do
      redis.call(group.args[1], group.args[2], unpack(list, first_of, last_of)) --@ group
    end
    for i = #list, 1, -1 do
      list[i] = nil
    end
  end
  seen = {}
end

-- refuses is the code by which a check refuses the item in hand, or nothing.
local function refuses(check)
  local reply = check.run and run(check)
  if is_wrong(check, reply) then
    return check.wrong
  elseif check.how == '?' then
    return reply and check.code
  elseif check.how == '<' then
    return tonumber(reply or 0) >= tonumber(ARGV[from + check.numbers[1]]) and check.code --@ below
  end
  if check.run then
    replies = type(reply) == 'table' and reply or {reply}
  end
  if check.how == '*' then
    return
  elseif refused[subject] then --@ refused before
    return check.code
  end
  for i = 1, check.count do
    local number = check.numbers[i]
    if (replies[i] or '') ~= (number and ARGV[from + number] or check.texts[i]) then --@ compare
      return check.code
    end
  end
end

-- answer is the code of an item, with the key that was of another type. What was left out is told at the end.
local function answer(code)
  if fault and code ~= 1 then
    return code .. ' ' .. fault
  elseif fault then
    note(fault)
  end
  return code
end

-- apply checks the item in hand, runs its steps, and returns its code.
local function apply(t)
  local checks, steps, adds, code = t.checks, t.steps, t.adds, t.blocked and 9
  fault = t.blocked
  if seen[subject] then --@ more than one
    write_groups() -- the last score counts
  end
  for i = 1, #checks do
    code = code or refuses(checks[i])
  end
  if code then
    refused[subject] = t.changes or refused[subject] --@ refuse
    return answer(code)
  end
  for i = 1, #steps do
    local step = steps[i]
    is_wrong(step, run(step)) --@ step
  end
  for i = 1, #adds do
    local list, values = adds[i].list, adds[i].values
    for n = 1, #values do
      list[#list + 1] = ARGV[from + values[n]] --@ collect
    end
    seen[subject] = true
  end
  t.applied = t.applied + 1 --@ applied
  return answer(1)
end

for _, line in ipairs(take_lines()) do
  run(read_step(line, 1))
end
for i, line in ipairs(take_lines()) do
  groups[i] = read_step(line, 1)
  groups[i].list = {}
end
for i, line in ipairs(take_lines()) do
  lasts[i] = read_step(line, 1)
  lasts[i].applied = 0
end
for i = 1, take_number() do
  local t = {applied = 0, checks = {}, steps = {}, adds = {}, lasts = {}, size = math.max(1, take_number())}
  t.keys, t.changes = take_number(), take_number() == 1
  for _, line in ipairs(take_lines()) do
    read_line(t, line)
  end
  templates[i] = t
end

local codes = {}
while at <= end_at do
  local t = templates[tonumber(ARGV[at])]
  from, first, subject = at, next_key, ARGV[at + 1]
  at, next_key = at + t.size, next_key + t.keys
  codes[#codes + 1] = apply(t)
end

write_groups()
for _, finish in ipairs(finishes) do
  finish()
end
for _, t in ipairs(templates) do
  for _, step in ipairs(t.lasts) do
    step.applied = step.applied + t.applied
  end
end
for _, step in ipairs(lasts) do
  if step.applied > 0 and not step.unfit then
    if step.count then
      step.args[step.count] = step.applied
    end
    step.run = step.run or redis.pcall
    run(step) --@ last
  end
end
call_dispatcher()
codes[#codes + 1] = list_of(unfit)
return codes
