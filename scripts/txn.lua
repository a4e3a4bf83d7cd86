-- Applies a batch of items in order. An item is compares, conditions and Redis commands that Go has decided. If there
-- are many, they are grouped into templates: an item names its template and gives its values. A check that fails
-- refuses its item, which then changes nothing, and the later items about the same subject, which were decided on top
-- of it. Only what depends on a reply is decided here, by verbs.
--
-- KEYS[1..] keys of the batch, whose types are checked first, and then the keys of each item:
--   <queue>:<index> zset ZADD ZREM ZSCORE, <queue>-input list LLEN LPOS LREM LSET RPUSH,
--   <queue>:claimed:<owner> list LRANGE LREM LTRIM,
--   <queue>:claimed:control list LRANGE LREM, <queue>:holder string GET, <queue>:rejected list LTRIM RPUSH,
--   <queue>:journal stream XADD XTRIM, <queue>:outbox stream XADD, <queue>:deeds stream XADD,
--   <queue>:stats hash HGET HINCRBY,
--   <queue>:wake list LLEN RPUSH, <queue>:policies hash HSETNX, <queue>:policy_uses hash HSET,
--   <queue>:commands zset ZADD ZCOUNT ZREMRANGEBYRANK ZSCORE, <queue>:gates zset ZADD, <queue>:holds hash HGET,
--   <queue>:heard hash HDEL,
--   <queue>:errors zset ZCARD ZINCRBY ZREM ZSCORE, <queue>:past_errors zset EXPIRE ZADD ZREM ZREMRANGEBYRANK
--   ZREMRANGEBYSCORE ZSCORE,
--   <queue>:model:<uid> hash DEL HDEL HMGET HSET ZSCORE, <queue>:history:<uid> list DEL LPUSH LSET LTRIM ZSCORE,
--   <queue>:payload:<uid> string DEL SET ZSCORE, <queue>:reply:<name> list EXPIRE LTRIM RPUSH,
--   <queue>:limit:<name> zset ZADD ZCARD ZREM ZSCORE, <queue>:rate:<name> string GET SET,
--   <queue>:circuit:<key> hash EXPIRE HDEL HGET HINCRBY HMGET HSET, <queue>:label:<name> set SADD SREM,
--   <queue>:parked:<name> zset ZADD ZCARD ZREM ZSCORE, <queue>:logs list LTRIM RPUSH,
--   <queue>:error:<name> hash DEL EXPIRE HGET HINCRBY HSET HSETNX PERSIST
-- ARGV[1] the instant of the batch in RFC 3339
-- ARGV[2] the same in Unix ms
-- ARGV[3] the types of the keys of the batch, in their order; "!" before a type: if it is wrong, nothing is done;
--   "?": a verb of the batch finds out
-- ARGV[4] how many arguments the lines are that follow it, see step.lua: what is done once, and templates
-- ARGV[5..] these lines, and then the items, of each the number of its template, its subject and its other values; or,
--   of few, its lines, see alone.lua
-- Returns a code per item: 1 applied, 2 conflict (the model has changed), 3 gone (the message is not claimed, or is a
--   command and the owner has lost the command queue), 4 taken (the entry that must be queued is not), 5 full (input),
--   6 broken (the model is no hash), 7 duplicate (a command with that id was handled within a day), 8 limited (a key
--   has no room for the start, or its slot is taken), 9 blocked (another key that it needs is of the wrong type). After
--   a space a code names the key of the wrong type; after the codes comes a list of such keys that only help. Without
--   templates an empty list: a key of the batch is of the wrong type, and nothing was written
-- include: misfit, wrong_types, chunks, batch, step
local refused = {} -- subjects of refused items
-- include: message, input, list, limit, streams, circuit_turn, circuit, failure_group, fingerprint, subject
-- include: template, item, alone
if failure then
  return failure
end
if #templates == 0 and at <= end_at and next(wrong_types) then
  return {} -- only a template knows what may be left out
end

-- Each item is checked, and then its steps run. All is in this loop, as a call costs as much as ten statements, and a
-- variable from outside a function costs twice.
while at <= end_at do
  local t = templates[tonumber(ARGV[at])]
  if not t then
    at = run_alone()
  else
    local values, own, checks, steps, adds, code = t.values, t.keys, t.checks, t.steps, t.adds, t.blocked and 9
    local from = at
    first, subject, kinds, fault = next_key, ARGV[at + 1], t.kinds, t.blocked
    at, next_key = at + t.size, next_key + t.count
    if t.again then
      write_groups() -- the last score counts
    end
    for i = 1, #values, 3 do
      values[i][values[i + 1]] = ARGV[from + values[i + 2]]
    end
    for i = 1, #own, 3 do
      own[i][own[i + 1]] = KEYS[first + own[i + 2]]
    end
    for i = 1, #checks do
      local check = checks[i]
      local args = check.args
      local one, two, refusal = check.one, check.two
      local reply = check.run(unpack(args, 1, check.n))
      if type(reply) == 'table' and reply.err then
        refusal = check.wrong
        note_wrong(args, reply)
      else
        one, two = one and ARGV[from + one] or '', two and ARGV[from + two] or ''
        refusal = refuses(check.how, check.code, reply, one, two) --@ check
      end
      code = refusal == check.wrong and refusal or code or refusal -- a key of the wrong type comes first
    end
    if not code then
      for i = 1, #steps do
        local step = steps[i]
        local args = step.args
        if step.drawn then
          args[step.drawn] = drawn
        end
        local reply = step.run(unpack(args, 1, step.n)) --@ step
        if reply and step.soft and type(reply) == 'table' and reply.err then
          note_wrong(args, reply)
        end
      end
      for i = 1, #adds, 3 do
        local list, other = adds[i], adds[i + 2]
        list[#list + 1] = ARGV[from + adds[i + 1]] --@ collect
        if other > 0 then
          list[#list + 1] = ARGV[from + other] --@ member
        end
      end
      t.applied = t.applied + 1 --@ applied
    end
    if code or fault then
      note_code(code, t.changes)
    else
      items = items + 1
      codes[items] = 1
    end
  end
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
  if step.applied > 0 and not step.wrong_type then
    run(step) --@ last
  end
end
call_dispatcher()
codes[items + 1] = list_of(wrong_types)
return codes
