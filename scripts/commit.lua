-- Commits a batch of decisions, in order. An item changes a model, or it settles a message that changes none. It is
-- applied only while its model and its message are as they were; a refused item changes nothing, and refuses the later
-- items of its model, which were decided on top of it. What all models of the batch share is written once, at the end.
--
-- KEYS[1] <queue>:due zset, uid -> refresh_at in Unix ms
-- KEYS[2] <queue>:running zset, uid -> deadline_at in Unix ms
-- KEYS[3] <queue>-input list
-- KEYS[4] <queue>:claimed:<owner> list
-- KEYS[5] <queue>:claimed:control list, the lane
-- KEYS[6] <queue>:holder string, the poller that holds the lane
-- KEYS[7] <queue>:rejected list
-- KEYS[8] <queue>:journal stream
-- KEYS[9] <queue>:outbox stream
-- KEYS[10] <queue>:stats hash
-- KEYS[11] <queue>:wake list
-- KEYS[12] <queue>:policies hash, name -> canonical JSON
-- KEYS[13] <queue>:policy_uses hash, inline policy -> "<models that use it> <number of its last change>", "?" models =
--   stored before they were counted; and changes, how many there were
-- KEYS[14..] per item that changes a model: <queue>:model:<uid> hash, <queue>:payload:<uid> string,
--   <queue>:history:<uid> list
-- ARGV[1] most entries in input
-- ARGV[2] journal cap, in entries
-- ARGV[3] history cap, in entries of one model
-- ARGV[4] rejected cap, in entries
-- ARGV[5] owner of the claimed messages, "" = there are none
-- ARGV[6..] per item, "" = none, a list behind its length: set, remove or settle; uid; claimed entry; list of counters.
--   Then of settle: entry for rejected. Of set and remove: rev expected; attempt_uid expected; entry to push; entry to
--   take back if it is queued, where one to push then takes its place; 1 = it must be queued; due in Unix ms; running
--   in Unix ms; payload; history entry; 1 = wake a dispatcher; lists of fields and values to set, of fields to delete,
--   of the journal entry, of the outbox entry, of the inline policies that it ceases to use ("" = none) and begins to
--   use ("" = none), with the text of that
-- Returns a code per item: 1 applied, 2 conflict (the model has changed), 3 gone (the message is not claimed, or is a
--   command and the owner has lost the lane), 4 taken (the entry that must be queued is not), 5 full (input), 6 broken
--   (the model is no hash)
-- include: types
-- include: chunks
local due, running, input, claimed, lane, holder = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local rejected, journal, outbox, stats, wake = KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11]
local policies, policy_uses = KEYS[12], KEYS[13]
local max_queued = tonumber(ARGV[1])
local journal_cap, history_cap, rejected_cap = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local owner = ARGV[5]

-- Check: a shared key of another type would end the script between two writes.
local wrong = wrong_type({'zset', 'zset', 'list', 'list', 'list', 'string', 'list', 'stream', 'stream', 'hash', 'list',
  'hash', 'hash'})
if wrong then
  return wrong
end

local at, key = 6, 14
local function take()
  at = at + 1
  return ARGV[at - 1]
end
local function take_list()
  local list = {}
  for i = 1, math.min(tonumber(take()), #ARGV) do
    list[i] = take()
  end
  return list
end

local codes, refused = {}, {}
local queued = redis.call('LLEN', input)
-- What is written at the end.
local uids, due_at, deadline_at = {}, {}, {}
local pushed, rejects, events, notices = {}, {}, {}, {}
local names, counts = {}, {}
local used, users, texts = {}, {}, {}
local call = false

local function count(counters)
  for _, name in ipairs(counters) do
    if not counts[name] then
      names[#names + 1] = name
    end
    counts[name] = (counts[name] or 0) + 1
  end
end

-- Commands stand in the lane, and are the holder's only. What the claimed list holds is its owner's, also commands that
-- an older version has left there.
local holds = redis.call('GET', holder) == owner --@ holder
local function in_lane(message)
  return string.lower(string.sub(message, 1, 1)) == 'c' and redis.call('LPOS', lane, message)
end
local function is_claimed(message)
  if in_lane(message) then
    return holds
  end
  return redis.call('LPOS', claimed, message)
end
local function drop(message)
  if in_lane(message) then
    redis.call('LREM', lane, 1, message) --@ command is removed
  else
    redis.call('LREM', claimed, 1, message) --@ claimed is removed
  end
end

local function use(policy, models)
  if policy ~= '' and not users[policy] then
    used[#used + 1] = policy
  end
  users[policy] = (users[policy] or 0) + models --@ uses are added
end

while at <= #ARGV do
  local op = take()
  local uid = take()
  local message = take()
  local counters = take_list()
  local gone = message ~= '' and not is_claimed(message) --@ claimed is looked for
  local code = 1

  if op == 'settle' then
    local reject = take()
    -- Check
    if gone then --@ settled is looked for
      code = 3
    elseif refused[uid] then
      code = 2
    end
    -- Write
    if code == 1 then
      drop(message) --@ settled is removed
      count(counters) --@ settled is counted
      rejects[#rejects + 1] = reject ~= '' and reject or nil --@ rejected is kept
    end
  else
    local rev, attempt_uid = take(), take()
    local push, back, must = take(), take(), take()
    local due_ms, running_ms = take(), take()
    local payload, past = take(), take()
    local wakes = take()
    local set, delete, event, notice = take_list(), take_list(), take_list(), take_list()
    local uses = take_list()
    local ceases, begins, text = uses[1], uses[2], uses[3]
    local hash = KEYS[key]
    local body = KEYS[key + 1]
    local history = KEYS[key + 2]
    key = key + 3
    -- Check
    local is = redis.pcall('HMGET', hash, 'rev', 'attempt_uid')
    if is.err then
      code = 6
    elseif gone then --@ gone
      code = 3
    elseif refused[uid] or (is[1] or '') ~= rev or (is[2] or '') ~= attempt_uid then --@ fence
      code = 2
    elseif must ~= '' and not redis.call('LPOS', input, back) then --@ taken
      code = 4
    elseif push ~= '' and back == '' and queued >= max_queued then --@ full
      code = 5
    end
    refused[uid] = refused[uid] or code ~= 1 --@ refuse
    -- Write what is the model's own, and note what is shared.
    if code == 1 then
      if op == 'remove' then
        redis.call('DEL', hash, body, history) --@ remove
      end
      for first, last in chunks(set) do
        redis.call('HSET', hash, unpack(set, first, last))
      end
      for first, last in chunks(delete) do
        redis.call('HDEL', hash, unpack(delete, first, last)) --@ delete fields
      end
      if payload ~= '' then
        redis.call('SET', body, payload)
      end
      if past ~= '' then
        redis.pcall('LPUSH', history, past) --@ history
        redis.pcall('LTRIM', history, 0, history_cap - 1) --@ history cap
      end
      if message ~= '' then
        drop(message)
      end
      if back ~= '' and push ~= '' then
        local place = redis.call('LPOS', input, back)
        if place then
          redis.call('LSET', input, place, push) --@ in its place
        end
      elseif back ~= '' then
        queued = queued - redis.call('LREM', input, 1, back) --@ take back
      elseif push ~= '' then
        pushed[#pushed + 1] = push --@ push
        queued = queued + 1
      end
      if due_at[uid] == nil then --@ more than one
        uids[#uids + 1] = uid
      end
      due_at[uid] = due_ms --@ due
      deadline_at[uid] = running_ms
      events[#events + 1] = #event > 0 and event or nil --@ journal
      notices[#notices + 1] = #notice > 0 and notice or nil --@ outbox
      count(counters) --@ count
      call = call or wakes ~= '' --@ call
      if ceases then
        use(ceases, -1) --@ cease
        use(begins, 1) --@ begin
        texts[begins] = text --@ text
      end
    end
  end
  codes[#codes + 1] = code
end

-- Write what is shared.
local function split(scores)
  local add, remove = {}, {}
  for _, uid in ipairs(uids) do
    if scores[uid] == '' then
      remove[#remove + 1] = uid --@ leave a set
    else
      add[#add + 1] = scores[uid]
      add[#add + 1] = uid
    end
  end
  return add, remove
end

local wait, start = split(due_at)
for first, last in chunks(wait) do
  redis.call('ZADD', due, unpack(wait, first, last))
end
for first, last in chunks(start) do
  redis.call('ZREM', due, unpack(start, first, last))
end
local begin, finish = split(deadline_at)
for first, last in chunks(begin) do
  redis.call('ZADD', running, unpack(begin, first, last)) --@ deadline
end
for first, last in chunks(finish) do
  redis.call('ZREM', running, unpack(finish, first, last))
end
for first, last in chunks(pushed) do
  redis.call('RPUSH', input, unpack(pushed, first, last))
end
for first, last in chunks(rejects) do
  redis.call('RPUSH', rejected, unpack(rejects, first, last))
  redis.call('LTRIM', rejected, -rejected_cap, -1)
end
-- An entry of a stream is written at once, or not: those of Go have some dozens of fields and values.
for _, event in ipairs(events) do
  redis.call('XADD', journal, 'MAXLEN', '~', journal_cap, '*', unpack(event, 1, math.min(#event, 1000)))
end
for _, notice in ipairs(notices) do
  redis.call('XADD', outbox, '*', unpack(notice, 1, math.min(#notice, 1000)))
end
for _, name in ipairs(names) do
  redis.pcall('HINCRBY', stats, name, counts[name]) --@ counters
end
local change = 0
if #used > 0 then -- a dispatcher may not read them
  change = tonumber(redis.call('HGET', policy_uses, 'changes') or '') or 0
end
for _, policy in ipairs(used) do
  local is = redis.call('HGET', policy_uses, policy) or ''
  local models = tonumber(string.match(is, '^(%d+) %d+$') or '')
  if texts[policy] and redis.call('HSETNX', policies, policy, texts[policy]) == 1 then
    models = models or 0
  end
  models = models and models + users[policy]
  if models and models < 1 then --@ last use
    redis.call('HDEL', policies, policy)
    redis.call('HDEL', policy_uses, policy)
  else
    redis.call('HSET', policy_uses, policy, (models or '?') .. ' ' .. change + 1, 'changes', change + 1)
  end
end
if call and redis.call('LLEN', wake) == 0 then --@ wake
  redis.call('RPUSH', wake, '1')
end
return codes
