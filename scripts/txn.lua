-- Applies a batch of items in order. An item is compares, conditions and Redis commands that Go has decided, grouped
-- into templates: an item names its template and gives its values. A check that fails refuses its item, which then
-- changes nothing, and the later items about the same subject, which were decided on top of it. Only what depends on
-- a reply is decided here, by verbs.
--
-- KEYS[1..] those of the batch, which is asked for their types, and then those that each item brings:
--   <queue>:due zset ZADD ZREM ZSCORE, <queue>:running zset ZADD ZREM ZSCORE, <queue>:urgent zset ZADD ZREM ZSCORE,
--   <queue>:failing zset ZADD ZREM ZSCORE, <queue>:disabled zset ZADD ZREM ZSCORE,
--   <queue>:parked zset ZADD ZREM ZSCORE, <queue>:stale_at zset ZADD ZREM ZSCORE,
--   <queue>:late zset ZADD ZREM ZSCORE, <queue>:stale zset ZADD ZREM ZSCORE,
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
-- ARGV[4..] lines that run first, groups, lines that run last, and templates, each behind how many there are; and the
--   items. A template is lines, see step.lua, and "item", behind which are how many values and keys an item has and
--   whether its subject changes. An item is the number of its template, its subject and its other values
-- Returns a code per item: 1 applied, 2 conflict (the model has changed), 3 gone (the message is not claimed, or is a
--   command and the owner has lost the command queue), 4 taken (the entry that must be queued is not), 5 full (input),
--   6 broken (the model is no hash), 7 duplicate (a command with that id was handled within a day), 8 limited (a key
--   has no room for the start, or its slot is taken), 9 blocked (another key that it needs is of another type). Behind
--   a space stands which key was of another type; and behind the codes a list of those that only help
-- include: types, misfits, chunks, batch, step
local groups, finals, templates = {}, {}, {}
local refused, seen = {}, {} -- subjects: of refused items; of those that wait in a group
-- include: message, input, list, limit, streams, circuit_turn, circuit, failure_group, fingerprint, subject

local function numbers_of(text)
  local numbers = {}
  for number in string.gmatch(text, '%d+') do
    table.insert(numbers, tonumber(number))
  end
  return numbers
end

local function read_line(t, what, head, words)
  local numbers, needed = numbers_of(head), nil
  if what == 'check' then
    local check = read_step(words, redis.pcall, t)
    check.code, check.wrong, check.how = numbers[1], numbers[2], string.match(head, '%p')
    check.want, check.second, needed = numbers[3], numbers[4], check.unfit
    table.insert(t.checks, check)
  elseif what == 'fields' then
    t.value = numbers[1]
    for name in string.gmatch(words, '\t=(%C*)') do
      table.insert(t.names, name)
    end
  elseif what == 'unless' then
    t.refuses = run(read_step(words)) and numbers[1] or t.refuses
  elseif what == 'need' then
    needed = unfit[numbers[1]]
  elseif what == 'last' then
    table.insert(t.finals, finals[numbers[1]])
  elseif what == 'add' or what == 'try' then
    local group = groups[numbers[1]]
    needed = what == 'add' and group.unfit
    for i = 2, not group.unfit and #numbers or 0 do
      table.insert(t.adds, group.list)
      table.insert(t.added, numbers[i])
    end
  else
    local step = read_step(words, what == 'do' and redis.call or redis.pcall, t)
    needed = what == 'do' and step.unfit
    table.insert(t.steps, not step.unfit and step or nil)
  end
  t.blocked = t.blocked or needed --@ blocked
  t.refuses = t.blocked and 9 or t.refuses
end

local function read_template(text)
  local t = {
    applied = 0, checks = {}, steps = {}, adds = {}, added = {}, finals = {},
    fills = {}, places = {}, values = {}, key_fills = {}, key_places = {}, keys = {},
    names = {}, value = 0, first = {}, first_place = 0, second = {}, second_place = 0,
  }
  for line in string.gmatch(text, '(.-)\n') do
    local what, head, words = string.match(line, '^(%a+) ?(%C*)(.*)$')
    if what == 'item' then
      local size, keys, changes = unpack(numbers_of(head), 1, 3)
      t.size, t.count, t.changes = math.max(1, size), keys, changes == 1
    else
      read_line(t, what, head, words)
    end
  end
  return t
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
  local reply, how = check.run(unpack(check.args, 1, check.n)), check.how
  if type(reply) == 'table' and reply.err then
    note_wrong(check, reply)
    return check.wrong
  elseif how == '?' then
    return reply and check.code
  elseif how == '<' then
    return tonumber(reply or 0) >= tonumber(ARGV[from + check.want]) and check.code --@ below
  elseif refused[subject] then --@ refused before
    return check.code
  end
  local item, second = from, check.second
  replies = type(reply) == 'table' and reply or {reply}
  local differs = (replies[1] or '') ~= ARGV[item + check.want]
  if differs or second and (replies[2] or '') ~= (second > 0 and ARGV[item + second] or '') then --@ compare
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

-- fill puts the values and keys of the item in hand into the steps of its template. Fields are of two steps at most.
local function fill(t)
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
end

-- apply checks the item in hand, runs its steps, and returns its code.
local function apply(t)
  local checks, steps, adds, added, code = t.checks, t.steps, t.adds, t.added, t.refuses
  fault = t.blocked
  if seen[subject] then --@ more than one
    write_groups() -- the last score counts
  end
  fill(t)
  for i = 1, #checks do
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
    if type(reply) == 'table' and reply.err then
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

-- take_lines reads lines behind their number.
local function take_lines(read)
  local count = math.min(tonumber(ARGV[at]), end_at - at)
  for i = at + 1, at + count do
    read(ARGV[i])
  end
  at = at + 1 + math.max(0, count)
end
take_lines(function(line) run(read_step(line, redis.call)) end)
take_lines(function(line)
  groups[#groups + 1] = read_step(line, redis.call)
  groups[#groups].list = {}
end)
take_lines(function(line)
  finals[#finals + 1] = read_step(line, redis.pcall)
  finals[#finals].applied = 0
end)
take_lines(function(text) templates[#templates + 1] = read_template(text) end)

local codes = {}
while at <= end_at do
  local t = templates[tonumber(ARGV[at])]
  from, first, subject = at, next_key, ARGV[at + 1]
  at, next_key = at + t.size, next_key + t.count
  codes[#codes + 1] = apply(t)
end

write_groups()
for _, finish in ipairs(finishes) do
  finish()
end
for _, t in ipairs(templates) do
  for _, step in ipairs(t.finals) do
    step.applied = step.applied + t.applied
  end
end
for _, step in ipairs(finals) do
  if step.count then
    step.args[step.count] = step.applied
  end
  if step.applied > 0 and not step.unfit then
    run(step) --@ last
  end
end
call_dispatcher()
codes[#codes + 1] = list_of(unfit)
return codes
