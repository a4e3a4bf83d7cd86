-- Commits a batch of decisions, in order. An item changes a model, or it settles a message that changes none. It is
-- applied only while its model and its message are as they were; a refused item changes nothing, and refuses the later
-- items of its model, which were decided on top of it. What all models of the batch share is written once, at the end.
--
-- KEYS[1] <queue>:due zset ZADD ZREM, uid -> refresh_at in Unix ms
-- KEYS[2] <queue>:running zset ZADD ZREM ZSCORE, uid -> deadline_at in Unix ms
-- KEYS[3] <queue>-input list LLEN LPOS LREM LSET RPUSH
-- KEYS[4] <queue>:claimed:<owner> list LRANGE LREM LTRIM
-- KEYS[5] <queue>:claimed:control list LRANGE LREM, the lane
-- KEYS[6] <queue>:holder string GET, the poller that holds the lane
-- KEYS[7] <queue>:rejected list LTRIM RPUSH
-- KEYS[8] <queue>:journal stream XADD XTRIM
-- KEYS[9] <queue>:outbox stream XADD
-- KEYS[10] <queue>:stats hash HGET HINCRBY
-- KEYS[11] <queue>:wake list LLEN RPUSH
-- KEYS[12] <queue>:policies hash HDEL HSETNX, name -> canonical JSON
-- KEYS[13] <queue>:policy_uses hash HDEL HGET HSET, inline policy -> "<models that use it> <number of its last
--   change>", "?" models = stored before they were counted; and changes, how many there were
-- KEYS[14] <queue>:urgent zset EXISTS ZADD ZREM, uid -> refresh_at in Unix ms
-- KEYS[15] <queue>:created stream XADD XTRIM
-- KEYS[16] <queue>:commands zset ZADD ZCOUNT ZREMRANGEBYRANK ZSCORE, id of a command -> when it was handled in Unix ms
-- KEYS[17] <queue>:failing zset ZADD ZREM, uid -> failing_since in Unix ms
-- KEYS[18] <queue>:disabled zset ZADD ZREM, uid -> refresh_disabled_at in Unix ms
-- KEYS[19] <queue>:parked zset ZADD ZREM, uid -> refresh_at in Unix ms
-- KEYS[20] <queue>:gates zset ZADD ZSCORE, gate -> when a dispatcher is to look at it in Unix ms
-- KEYS[21] <queue>:holds hash HGET, id -> JSON; and changes, how many there were
-- KEYS[22] <queue>:stale_at zset ZADD ZREM, uid -> when its freshness changes next in Unix ms
-- KEYS[23] <queue>:late zset ZADD ZREM, uid -> when it becomes stale in Unix ms, or the end of time of one that never
--   succeeded
-- KEYS[24] <queue>:stale zset ZADD ZREM, uid -> since when it is stale in Unix ms
-- KEYS[25] <queue>:errors zset ZCARD ZINCRBY ZREM ZSCORE, id of a signature -> how many models are failing by it
-- KEYS[26] <queue>:past_errors zset EXPIRE ZADD ZCARD ZREM ZREMRANGEBYSCORE, id of one by which no model is failing any
--   more -> since when in Unix ms
-- KEYS[27..] per item as many of these as the keys of its kind: <queue>:model:<uid> hash DEL HDEL HGET HMGET HSET,
--   <queue>:history:<uid> list DEL LPUSH LSET LTRIM, <queue>:payload:<uid> string DEL SET, <queue>:reply:<name> list
--   EXPIRE LTRIM RPUSH; and behind them as many as more says, in the order in which their words stand here:
--   <queue>:limit:<name> zset ZADD ZCARD ZREM, <queue>:rate:<name> string GET SET, <queue>:circuit:<key> hash EXPIRE
--   HDEL HINCRBY HMGET HSET, <queue>:label:<name> set SADD SREM, <queue>:parked:<name> zset ZADD ZCARD ZREM, three of
--   <queue>:error:<name> hash DEL EXPIRE HGET HINCRBY HSET HSETNX PERSIST
-- ARGV[1] the instant of the batch in RFC 3339
-- ARGV[2] most entries in input
-- ARGV[3] journal cap, in entries, and of created likewise
-- ARGV[4] history cap, in entries of one model
-- ARGV[5] rejected cap, in entries
-- ARGV[6] owner of the claimed messages, "" = there are none
-- ARGV[7] how many changes of holds there were when the batch was decided: after another one no attempt is started
-- ARGV[8] how many kinds of items there are
-- ARGV[9..] the kinds, each a list of words behind its length, and then the items: the number of the kind, the uid, and
--   what the words of the kind announce, in this order: message = the claimed entry; id = the id of the command, and
--   the instant of the batch in Unix ms; reply = the entry for the reply list; reject = the entry for rejected; rev,
--   attempt = rev and attempt_uid expected, without the second word none; push = the entry to push; back = the entry to
--   take back if it is queued, where one to push then takes its place; due, urgent, running = the score in Unix ms,
--   without the word it leaves the set; payload; history = the entry; attempts = all entries of the history in place of
--   those that there are, oldest first, a list behind its length; notice, second = entries for the outbox, each a list
--   behind its length; uses = the inline policy that the model ceases to use, the one that it begins to use ("" = none)
--   and the text of that; strange = fields to delete that no model has, a list behind its length; failing, disabled,
--   parked, ages (in stale_at), late, stale = the score in Unix ms, "" = it leaves the set; gate = the gate that parks
--   the model; look = when that is to be looked at in Unix ms; ms = the instant of the batch in Unix ms; takes = per
--   key how many may run with the start, "" = any number, its slots as they were decided on and as they are to be, "" =
--   they stay, and for how many ms that is kept; frees = per key its gate; closes = until when in Unix us; circuit =
--   its gate and its key, 1 = the attempt has failed, 0 = it was answered, "" = neither, after how many failures of how
--   many it opens, when it is to be probed in RFC 3339 and in Unix ms; error = the signature by which it fails, a list
--   behind its length: id, how many models it may stop untold, its text, reason and error type; note=<name> = what only
--   the journal is told; field=<name> = the value of a field.
--   These words announce nothing: settle = no model changes; remove = the model goes; keys=<n> = how many keys are
--   passed; more=<n> = how many further ones; takes=<n> = the limits and rates of keys that it takes, one after the
--   other; probe = it tries an open circuit; labels=<n>, unlabel=<n> = the sets of labels that it joins and leaves;
--   ungate = it leaves the models of a gate, gate = it joins them; frees=<n>, extend=<n> = limits that it leaves, or
--   holds longer; closes=<n> = rates of keys that are closed; circuit = it settles one; sound = it fails by no
--   signature any more; fleet = any of these words from failing on; must = what is taken back must be queued; ticket =
--   the attempt draws one: its number in the order of all that were ever pushed; fenced = it holds only if no hold has
--   changed; instead = the entry of the history takes the place of the newest one; wake = call a dispatcher;
--   event=<name> = what the journal calls it, without the word it is not told; apart = it is told in created;
--   count=<name> = a counter; now=<name> = a field that is the instant of the batch; gone=<name> = a field to delete
-- Returns a code per item: 1 applied, 2 conflict (the model has changed), 3 gone (the message is not claimed, or is a
--   command and the owner has lost the lane), 4 taken (the entry that must be queued is not), 5 full (input), 6 broken
--   (the model is no hash), 7 duplicate (a command with that id was handled within a day), 8 limited (a key has no room
--   for the start, or its slot is taken), 9 blocked (another key that it needs is of another type). Behind a space
--   stands which key was of another type; and behind the codes a list of those that only help
-- include: types
-- include: misfits
-- include: chunks
local due, running, input, claimed, lane, holder = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local rejected, journal, outbox, stats, wake = KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11]
local policies, policy_uses, urgent, created, command_ids = KEYS[12], KEYS[13], KEYS[14], KEYS[15], KEYS[16]
local failing, disabled, parked, gates, holds = KEYS[17], KEYS[18], KEYS[19], KEYS[20], KEYS[21]
local stale_at, late, stale = KEYS[22], KEYS[23], KEYS[24]
local errors, past_errors = KEYS[25], KEYS[26]
local instant, max_queued = ARGV[1], tonumber(ARGV[2])
local journal_cap, history_cap, rejected_cap = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local owner, holds_seen = ARGV[6], ARGV[7]

-- Check: a key of another type would end the script between two writes.
local _, unfit = wrong_type(header_types)
if unfit[1] or unfit[2] then
  return redis.error_reply('WRONGTYPE ' .. (unfit[1] or unfit[2]))
end
-- Which of KEYS an item needs, by its words. What is written to others is left out, and doctor mends it: of the indexes
-- in which a model stands these are the words.
local needs = {
  push = {3}, back = {3}, message = {4}, reject = {7}, notice = {9}, second = {9}, circuit = {9, 20},
  error = {9}, uses = {12}, urgent = {14}, id = {16}, gate = {20}, fenced = {21},
}
local left_out = {}
for word, place in pairs({failing = 17, disabled = 18, parked = 19, ages = 22, late = 23, stale = 24}) do
  left_out[word] = unfit[place]
end

if unfit[8] then
  journal_cap = 0
end

local ARGV = ARGV -- a local is read faster, and this is read most
local at, key = 9, 27
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

-- append puts names with the same value behind what a list of names and values holds.
local function append(list, names, value)
  for _, name in ipairs(names) do
    list[#list + 1] = name
    list[#list + 1] = value
  end
end

-- Most items of a batch are of few kinds. Each has tables that the values of its items are filled into, one after the
-- other.
local function new_kind(words)
  local kind = {applied = 0, keys = 0, counters = {}, notes = {}, now = {}, fields = {}, delete = {}, set = {}}
  local lists = {count = kind.counters, note = kind.notes, now = kind.now, field = kind.fields, gone = kind.delete}
  for _, word in ipairs(words) do
    local name, value = string.match(word, '^(%l+)=?(.*)$')
    if lists[name] then
      table.insert(lists[name], value)
    else
      kind[name] = value
    end
    for _, place in ipairs(needs[name] or {}) do
      kind.blocked = kind.blocked or unfit[place] --@ blocked
    end
  end
  kind.command = kind.id or kind.reply
  kind.entry = {'event', kind.event or '', 'uid', '', 'at', instant}
  append(kind.entry, kind.notes, '')
  for _, list in ipairs({kind.set, kind.entry}) do
    append(list, kind.fields, '')
    append(list, kind.now, instant)
    append(list, kind.ticket and {'ticket'} or kind.error and {'error'} or {}, '')
  end
  kind.entry_own = #kind.entry -- what only this script knows
  append(kind.entry, kind.delete, '')
  kind.told = kind.event and not (unfit[8] or kind.apart and unfit[15])
  return kind
end
local kinds = {}
for i = 1, math.min(tonumber(ARGV[8]), #ARGV) do
  kinds[i] = new_kind(take_list())
end

local codes, refused = {}, {}
local queued = unfit[3] and 0 or redis.call('LLEN', input)
local tickets = 0 -- that were drawn, which is how often an attempt was started
local held = false -- somebody has begun or ended a hold since the batch was decided
for _, kind in ipairs(kinds) do
  if kind.ticket and not unfit[10] then -- a poller starts none
    tickets = tonumber(redis.call('HGET', stats, 'start') or '') or 0
  end
  if kind.fenced and not unfit[21] then
    held = (redis.call('HGET', holds, 'changes') or '') ~= holds_seen --@ hold
  end
end
-- What is written at the end.
local uids, due_at, urgent_at, deadline_at = {}, {}, {}, {}
local hurry = not unfit[14] and redis.call('EXISTS', urgent) == 1 -- mostly nobody is in one
local pushed, rejects, notices = {}, {}, {}
local used, users, texts = {}, {}, {}
local call, told, grown = false, false, false
local noted, handled = {}, {}

-- Commands stand in the lane, and are the holder's only. What the claimed list holds is its owner's, also commands that
-- an older version has left there. A message may stand there more than once.
local leads = owner ~= '' and not (unfit[5] or unfit[6]) and redis.call('GET', holder) == owner --@ holder
local results = owner ~= '' and not unfit[4] and redis.call('LRANGE', claimed, 0, -1) or {}
local commands = leads and redis.call('LRANGE', lane, 0, -1) or {}
local function tally(messages)
  local times = {}
  for _, message in ipairs(messages) do
    times[message] = (times[message] or 0) + 1
  end
  return times
end
local in_claimed, in_lane = tally(results), tally(commands)
local done_results, done_commands = {}, {}
local function is_claimed(message)
  return (in_lane[message] or 0) + (in_claimed[message] or 0) > 0
end
local function drop(message)
  if (in_lane[message] or 0) > 0 then
    in_lane[message] = in_lane[message] - 1
    done_commands[#done_commands + 1] = message --@ command is removed
  else
    in_claimed[message] = in_claimed[message] - 1
    done_results[#done_results + 1] = message --@ claimed is removed
  end
end

-- A command that was handled is known by its id for a day, and its sender told if he asked for it.
local day = 86400
local function is_handled(id, now)
  local last = not unfit[16] and redis.call('ZSCORE', command_ids, id)
  return handled[id] or last and tonumber(last) > now - day * 1000
end
local function note(id, now)
  noted[#noted + 1] = now
  noted[#noted + 1] = id
  handled[id] = true
end

-- standing finds an entry of input. The release before ended entries with the version of its contract, ,"v":1.
local function standing(entry)
  local stands = redis.call('LPOS', input, entry)
  if not stands then
    entry = string.sub(entry, 1, -2) .. string.format(',%q%c1%c', 'v', 58, 125)
    stands = redis.call('LPOS', input, entry)
  end
  return stands, entry
end

local function use(policy, models)
  if policy ~= '' and not users[policy] then
    used[#used + 1] = policy
  end
  users[policy] = (users[policy] or 0) + models --@ uses are added
end

-- What only a part of the models has: a place in an index, labels, a gate.
local fleet_words = {'failing', 'disabled', 'parked', 'ages', 'late', 'stale', 'gate', 'look', 'ms'}
local function take_some(count)
  local values = {}
  for i = 1, tonumber(count) do
    values[i] = take()
  end
  return values
end
local function take_fleet(kind)
  local fleet = {}
  for _, word in ipairs(fleet_words) do
    fleet[word] = kind[word] and take()
  end
  fleet.waits = fleet.parked
  for word in pairs(left_out) do
    fleet[word] = nil
  end
  fleet.takes = take_some(4 * (kind.takes or 0))
  fleet.frees = take_some(kind.frees or 0)
  fleet.closes = take_some(kind.closes and 1 or 0)
  fleet.circuit = take_some(kind.circuit and 7 or 0)
  fleet.error = kind.error and take_list()
  return fleet
end
local from, further = 0, 0 -- of the further keys of an item the first and the next
local function next_key()
  further = further + 1
  return KEYS[further - 1]
end

-- is_wrong tells by a reply whether the further key taken last is of another type, and notes which that is.
local fault
local function is_wrong(reply, expected)
  local wrong = type(reply) == 'table' and reply.err
  if wrong then
    fault = misfit(further - 1, expected) or wrong
  end
  return wrong
end

-- limited tells whether a key has no room for the start, or another has taken its slot; or whether one is of another
-- type that the item needs.
local function limited(kind, fleet)
  local is = false
  further = from
  for i = 1, #fleet.takes, 4 do
    local most, before, after = fleet.takes[i], fleet.takes[i + 1], fleet.takes[i + 2]
    local limit = next_key('limit')
    local count = redis.pcall('ZCARD', limit)
    if is_wrong(count, 'zset') then
      return false
    end
    local rate = next_key('rate')
    local slots = redis.pcall('GET', rate)
    if is_wrong(slots, 'string') then
      return false
    end
    is = is or most ~= '' and count >= tonumber(most) --@ full key
    is = is or after ~= '' and (slots or '') ~= before --@ slot
  end
  if kind.probe then
    local state = redis.pcall('HMGET', next_key('circuit'), 'opened_at', 'probe')
    if is_wrong(state, 'hash') then
      return false
    end
    is = is or not state[1] or state[2] and redis.call('ZSCORE', running, state[2]) and true --@ one probe
  end
  if fleet.gate then
    further = further + (kind.labels or 0) + (kind.unlabel or 0) + (kind.ungate and 1 or 0)
    if is_wrong(redis.pcall('ZCARD', next_key('parked')), 'zset') then
      return false
    end
  end
  return is
end

-- include: circuit

-- settle_circuit counts what the end of an attempt says of its key. An open circuit is settled by its probe alone.
local function settle_circuit(uid, fleet)
  local says = fleet.circuit
  local gate, name, outcome, failures, of = says[1], says[2], says[3], says[4], says[5]
  local probe_at, probe_ms = says[6], says[7]
  local state = next_key('circuit')
  local is = redis.pcall('HMGET', state, 'recent', 'opened_at', 'probe')
  if is_wrong(is, 'hash') then
    return
  end
  local recent = string.sub((is[1] or '') .. outcome, -tonumber(of))
  local _, failed = string.gsub(recent, '1', '')
  if outcome ~= '' then
    redis.call('HSET', state, 'recent', recent)
  end
  if not is[2] then -- one that was opened by hand may have to be kept for longer
    redis.call('EXPIRE', state, 7 * 86400)
  end
  if is[2] and is[3] ~= uid then --@ probe alone
    return
  end
  if is[2] and outcome == '0' then
    redis.call('HDEL', state, 'opened_at', 'probe_at', 'probe', 'recent', 'by', 'reason') --@ close
    redis.call('ZADD', gates, 'XX', fleet.ms, gate) --@ let go
    tell_circuit('closed', name, instant, journal_cap)
    call = true
  elseif is[2] and outcome == '' then
    redis.call('HDEL', state, 'probe') --@ probe anew
    redis.call('ZADD', gates, 'XX', fleet.ms, gate)
    call = true
  elseif is[2] then
    redis.call('HSET', state, 'probe_at', probe_at) --@ stay open
    redis.call('HDEL', state, 'probe')
    redis.call('ZADD', gates, 'XX', probe_ms, gate)
  elseif outcome ~= '' and failed >= tonumber(failures) then
    redis.call('HSET', state, 'opened_at', instant, 'probe_at', probe_at) --@ open
    redis.call('ZADD', gates, 'NX', probe_ms, gate) --@ listed
    redis.call('HINCRBY', state, 'opened', 1)
    tell_circuit('opened', name, instant, journal_cap)
  end
end

-- take_keys takes what a start needs of its keys, or reserves it.
local function take_keys(kind, uid, fleet, running_ms)
  for i = 1, #fleet.takes, 4 do
    local after, lasts = fleet.takes[i + 2], fleet.takes[i + 3]
    local limit, rate = next_key('limit'), next_key('rate')
    if running_ms ~= '' then
      redis.call('ZADD', limit, running_ms, uid) --@ take the key
    end
    if after ~= '' then
      redis.call('SET', rate, after, 'PX', lasts) --@ take the slot
    end
  end
  if kind.probe then
    redis.call('HSET', next_key('circuit'), 'probe', uid) --@ probe
  end
end

-- close closes a key until an instant. The slots that are reserved come as much later.
local function close(rate, now, till)
  local is = redis.pcall('GET', rate)
  if is_wrong(is, 'string') then
    return
  end
  local free, closed = string.match(is or '', '^(%d*) ?(%d*)$')
  free, closed = tonumber(free or '') or 0, tonumber(closed or '') or 0
  local open = math.max(closed, now)
  if open < till then
    free = math.max(free, open) + till - open
    local slots, lasts = string.format('%.0f %.0f', free, till), math.ceil((free - now) / 1000)
    redis.call('SET', rate, slots, 'PX', lasts) --@ close the key
  end
end

-- free_keys gives back what an attempt has taken of its keys. What waits for one of them is looked at at once.
local function free_keys(kind, uid, fleet, running_ms)
  for _, gate in ipairs(fleet.frees) do
    is_wrong(redis.pcall('ZREM', next_key('limit'), uid), 'zset') --@ free the key
    if not unfit[20] and redis.call('ZSCORE', gates, gate) then
      redis.call('ZADD', gates, fleet.ms, gate) --@ freed
      call = true
    end
  end
  for _ = 1, tonumber(kind.extend or 0) do
    is_wrong(redis.pcall('ZADD', next_key('limit'), running_ms, uid), 'zset') --@ extend
  end
  for _ = 1, tonumber(kind.closes or 0) do
    close(next_key('rate'), 1000 * fleet.ms, tonumber(fleet.closes[1]))
  end
  if kind.circuit then
    settle_circuit(uid, fleet)
  end
end

-- Failures are sorted by signatures. The last three keys of an item tell of them: that by which its model was failing,
-- that by which it fails now, and other, which stands for those that are too many.
local most_errors = 1000 --@ most errors
local incidents = {}
local function error_key(_, place)
  return KEYS[key - 3 + place]
end
local function are_hashes()
  for place = 0, 2 do
    if type(redis.pcall('HGET', error_key('error', place), 'uids')) == 'table' then
      fault = misfit(key - 3 + place, 'hash')
      return false
    end
  end
  return true
end
local function leave_error(id, now)
  local place = id == 'other' and 2 or 0
  redis.call('HINCRBY', error_key('error', place), 'ended', 1)
  if tonumber(redis.call('ZINCRBY', errors, -1, id)) > 0 then --@ leave the error
    return
  end
  redis.call('ZREM', errors, id)
  redis.call('ZREMRANGEBYSCORE', past_errors, '-inf', now - day * 1000)
  if redis.call('ZCARD', past_errors) < most_errors then
    redis.call('ZADD', past_errors, now, id)
    redis.call('EXPIRE', past_errors, day)
    redis.call('EXPIRE', error_key('error', place), day)
  else
    redis.call('DEL', error_key('error', place))
  end
end
local function join_error(uid, id, place)
  local last = {uid}
  for other in string.gmatch(redis.call('HGET', error_key('error', place), 'uids') or '', '%S+') do
    last[#last + 1] = other ~= uid and #last < 3 and other or nil
  end
  redis.call('HSET', error_key('error', place), 'uids', table.concat(last, ' '))
  redis.call('HSETNX', error_key('error', place), 'first_at', instant)
  redis.call('HINCRBY', error_key('error', place), 'began', 1)
  redis.call('PERSIST', error_key('error', place))
  redis.call('ZREM', past_errors, id)
  return tonumber(redis.call('ZINCRBY', errors, 1, id)) --@ join the error
end
local function tell_error(id, place, models, now, text, reason)
  local last = tonumber(redis.call('HGET', error_key('error', place), 'told_ms') or '')
  if not last or now - last >= day * 1000 then
    redis.call('HSET', error_key('error', place), 'told_ms', string.format('%d', now))
    incidents[#incidents + 1] = {'event', 'new_error', 'at', instant, 'error', id, 'signature', text,
      'models', string.format('%d', models), 'reason', reason}
  end
end
local function write_error(uid, was, id, now, untold, text, reason, error_type)
  local place = 1
  local known = id == was or redis.call('ZSCORE', errors, id)
  if id == 'other' or not known and redis.call('ZCARD', errors) >= most_errors then --@ too many
    id, place, text = 'other', 2, 'other'
  end
  if was and was ~= id then
    leave_error(was, now)
  end
  redis.call('HSET', error_key('error', place), 'signature', text, 'reason', reason, 'error_type', error_type,
    'uid', uid, 'last_at', instant)
  redis.call('HINCRBY', error_key('error', place), 'failures', 1)
  if was ~= id then
    local models = join_error(uid, id, place)
    if untold > 0 and models == untold + 1 then
      tell_error(id, place, models, now, text, reason)
    end
  end
  return id
end
-- sort_error returns the signature by which the model is failing from now on. Where it cannot be counted, doctor will.
local function sort_error(hash, uid, fleet)
  local says = fleet.error or {}
  local id, untold, text, reason, error_type = says[1], says[2], says[3], says[4], says[5]
  local was = redis.call('HGET', hash, 'error')
  if unfit[25] or unfit[26] or not are_hashes() then
    return id
  end
  if id then
    id = write_error(uid, was, id, tonumber(fleet.ms), tonumber(untold), text, reason, error_type)
  elseif was then
    leave_error(was, tonumber(fleet.ms))
  end
  return id
end
local function write_fleet(kind, uid, fleet, running_ms)
  further = from
  take_keys(kind, uid, fleet, running_ms)
  if fleet.failing == '' then
    redis.call('ZREM', failing, uid) --@ failing no more
  elseif fleet.failing then
    redis.call('ZADD', failing, fleet.failing, uid) --@ failing
  end
  if fleet.disabled == '' then
    redis.call('ZREM', disabled, uid) --@ enabled
  elseif fleet.disabled then
    redis.call('ZADD', disabled, fleet.disabled, uid) --@ disabled
  end
  if fleet.parked == '' then
    redis.call('ZREM', parked, uid) --@ parked no more
  elseif fleet.parked then
    redis.call('ZADD', parked, fleet.parked, uid) --@ parked
  end
  if fleet.ages == '' then
    redis.call('ZREM', stale_at, uid) --@ ages no more
  elseif fleet.ages then
    redis.call('ZADD', stale_at, fleet.ages, uid) --@ ages
  end
  if fleet.late == '' then
    redis.call('ZREM', late, uid) --@ late no more
  elseif fleet.late then
    redis.call('ZADD', late, fleet.late, uid) --@ late
  end
  if fleet.stale == '' then
    redis.call('ZREM', stale, uid) --@ stale no more
  elseif fleet.stale then
    redis.call('ZADD', stale, fleet.stale, uid) --@ stale
  end
  for _ = 1, tonumber(kind.labels or 0) do
    is_wrong(redis.pcall('SADD', next_key('label'), uid), 'set') --@ label
  end
  for _ = 1, tonumber(kind.unlabel or 0) do
    is_wrong(redis.pcall('SREM', next_key('label'), uid), 'set') --@ unlabel
  end
  if kind.ungate then
    is_wrong(redis.pcall('ZREM', next_key('parked'), uid), 'zset') --@ leave the gate
  end
  if fleet.gate then
    redis.call('ZADD', next_key('parked'), fleet.waits, uid) --@ gate
    redis.call('ZADD', gates, 'LT', fleet.look, fleet.gate) --@ look
  end
  free_keys(kind, uid, fleet, running_ms)
end

local last_at = #ARGV
while at <= last_at do
  local kind = kinds[tonumber(take())]
  local uid = take()
  local message = kind.message and take()
  local id, now, reply
  if kind.command then
    id = kind.id and take()
    now = kind.id and take()
    reply = kind.reply and take()
  end
  local reject = kind.reject and take()
  -- Keys that the kind does not pass are those of the next item here, and not touched.
  local hash = KEYS[key]
  local history = KEYS[key + 1]
  local body = KEYS[key + 2]
  local replies = KEYS[key + 3]
  local own = key
  key = key + kind.keys
  if kind.more then
    from = key
    key = key + kind.more
  end
  fault = kind.blocked
  local gone = not fault and message and not is_claimed(message) --@ claimed is looked for
  local again = id and is_handled(id, now) --@ id is looked for
  local code = 1

  if kind.settle then
    -- Check
    if fault then
      code = 9
      refused[uid] = uid ~= ''
    elseif gone then --@ settled is looked for
      code = 3
    elseif again then -- those behind it wait until it is settled
      code = 7
      refused[uid] = uid ~= ''
    elseif refused[uid] then
      code = 2
    end
    -- Write
    if code == 1 then
      drop(message) --@ settled is removed
      kind.applied = kind.applied + 1 --@ settled is counted
      rejects[#rejects + 1] = reject or nil --@ rejected is kept
    end
  else
    local rev = take()
    local attempt_uid = kind.attempt and take() or ''
    local push = kind.push and take()
    local back = kind.back and take()
    local due_ms = kind.due and take() or ''
    local urgent_ms = kind.urgent and take() or ''
    local running_ms = kind.running and take() or ''
    local payload = kind.payload and take()
    local past = kind.history and take()
    local attempts = kind.attempts and take_list()
    local notice = kind.notice and take_list()
    local second = kind.second and take_list()
    local ceases = kind.uses and take()
    local begins = kind.uses and take()
    local text = kind.uses and take()
    local strange = kind.strange and take_list()
    local fleet = kind.fleet and take_fleet(kind)
    local entry, set, delete = kind.entry, kind.set, kind.delete
    entry[4] = uid
    local place = 6
    for _ = 1, #kind.notes do
      place = place + 2
      entry[place] = take()
    end
    for i = 2, 2 * #kind.fields, 2 do
      local value = ARGV[at] -- most of a batch is taken here: without a call
      at = at + 1
      place = place + 2
      set[i] = value
      entry[place] = value
    end
    -- Check
    local is = redis.pcall('HMGET', hash, 'rev', 'attempt_uid')
    if is.err then
      code = 6
      fault = misfit(own, 'hash') or is.err
    elseif fault then
      code = 9
    elseif gone then --@ gone
      code = 3
    elseif again then
      code = 7
    elseif refused[uid] or (is[1] or '') ~= rev or (is[2] or '') ~= attempt_uid or held and kind.fenced then --@ fence
      code = 2
    elseif kind.must and not standing(back) then --@ taken
      code = 4
    elseif push and not back and queued >= max_queued then --@ full
      code = 5
    elseif fleet and limited(kind, fleet) then
      code = 8
    elseif fault then --@ misfit
      code = 9
    end
    refused[uid] = refused[uid] or code ~= 1 --@ refuse
    -- Write what is the model's own, and note what is shared.
    if code == 1 then
      if kind.error or kind.sound then --@ sort
        local signature = sort_error(hash, uid, fleet)
        if signature then
          set[#set] = signature
          entry[kind.entry_own] = signature
        end
      end
      if kind.remove then
        redis.call('DEL', hash, body, history) --@ remove
      end
      if kind.ticket then
        tickets = tickets + 1 --@ ticket
        set[#set] = string.format('%d', unfit[10] and 0 or tickets)
        entry[kind.entry_own] = set[#set]
      end
      if #set > 0 then
        redis.call('HSET', hash, unpack(set, 1, math.min(#set, 1000)))
      end
      if #delete > 0 then
        redis.call('HDEL', hash, unpack(delete, 1, math.min(#delete, 1000))) --@ delete fields
      end
      if strange then
        redis.call('HDEL', hash, unpack(strange, 1, math.min(#strange, 1000)))
      end
      if payload then
        redis.call('SET', body, payload)
      end
      if past and not (kind.instead and redis.pcall('LSET', history, 0, past).ok) then --@ instead
        local ended = redis.pcall('LPUSH', history, past) --@ history
        if type(ended) ~= 'number' then
          fault = misfit(own + 1, 'list')
        elseif ended > history_cap then
          redis.call('LTRIM', history, 0, history_cap - 1) --@ history cap
        end
      end
      if fleet then
        write_fleet(kind, uid, fleet, running_ms)
      end
      if attempts then
        redis.call('DEL', history) --@ past before
        for first, last in chunks(attempts) do
          redis.call('LPUSH', history, unpack(attempts, first, last)) --@ past
        end
      end
      if message then
        drop(message)
      end
      if back and push then
        local stands = standing(back)
        if stands then
          redis.call('LSET', input, stands, push) --@ in its place
        end
      elseif back then
        local _, as_it_stands = standing(back)
        queued = queued - redis.call('LREM', input, 1, as_it_stands) --@ take back
      elseif push then
        pushed[#pushed + 1] = push --@ push
        queued = queued + 1
      end
      local fresh = due_at[uid] == nil
      if fresh then --@ more than one
        uids[#uids + 1] = uid
      end
      due_at[uid] = due_ms --@ due
      hurry = hurry or urgent_ms ~= ''
      if hurry then
        urgent_at[uid] = urgent_ms --@ urgent
      end
      deadline_at[uid] = running_ms
      if kind.told then --@ journal
        if kind.apart and fresh then -- what follows in journal must not come before it
          redis.call('XADD', created, '*', unpack(entry, 1, math.min(#entry, 1000))) --@ create
          grown = true
        else
          redis.call('XADD', journal, '*', unpack(entry, 1, math.min(#entry, 1000)))
          told = true
        end
      end
      notices[#notices + 1] = notice or nil --@ outbox
      notices[#notices + 1] = second or nil --@ second
      kind.applied = kind.applied + 1 --@ count
      call = call or kind.wake --@ call
      if ceases then
        use(ceases, -1) --@ cease
        use(begins, 1) --@ begin
        texts[begins] = text --@ text
      end
    end
  end
  if code == 1 and id then --@ note
    note(id, now)
  end
  if code == 1 and reply then
    local stand = redis.pcall('RPUSH', replies, reply) --@ reply
    if type(stand) == 'number' then
      redis.call('LTRIM', replies, -1000, -1)
      redis.call('EXPIRE', replies, day)
    else
      fault = misfit(own + 3, 'list')
    end
  end
  if fault and (code == 6 or code == 9) then
    code = code .. ' ' .. fault
  elseif fault then
    unfit[fault] = fault
  end
  codes[#codes + 1] = code
end

-- Write what is shared.
local function split(scores)
  local add, remove = {}, {}
  for _, uid in ipairs(uids) do
    local score = scores[uid]
    if score == '' then
      remove[#remove + 1] = uid --@ leave a set
    elseif score then
      add[#add + 1] = score
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
if hurry then
  local at_once, calm = split(urgent_at)
  for first, last in chunks(at_once) do
    redis.call('ZADD', urgent, unpack(at_once, first, last))
  end
  for first, last in chunks(calm) do
    redis.call('ZREM', urgent, unpack(calm, first, last)) --@ calm
  end
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
-- What is done stands in front, in its order, unless something before it was refused.
local done = 0
while done < #done_results and done_results[done + 1] == results[done + 1] do
  done = done + 1
end
if done > 0 then
  redis.call('LTRIM', claimed, done, -1)
end
for i = done + 1, #done_results do
  redis.call('LREM', claimed, 1, done_results[i])
end
for _, command in ipairs(done_commands) do
  redis.call('LREM', lane, 1, command)
end
for first, last in chunks(rejects) do
  redis.call('RPUSH', rejected, unpack(rejects, first, last))
  redis.call('LTRIM', rejected, -rejected_cap, -1)
end
for first, last in chunks(noted) do
  redis.call('ZADD', command_ids, unpack(noted, first, last))
end
if #noted > 0 then
  local old = redis.call('ZCOUNT', command_ids, '-inf', noted[1] - day * 1000)
  if old > 0 then -- a day's worth at once would keep Redis busy for long
    redis.call('ZREMRANGEBYRANK', command_ids, 0, math.min(old, 1000) - 1) --@ forget
  end
end
for _, incident in ipairs(incidents) do
  notices[#notices + 1] = incident
  if tonumber(journal_cap) > 0 then
    redis.call('XADD', journal, '*', unpack(incident, 1, math.min(#incident, 1000)))
    told = true
  end
end
if told then
  redis.call('XTRIM', journal, 'MAXLEN', '~', journal_cap) --@ journal cap
end
if grown then
  redis.call('XTRIM', created, 'MAXLEN', '~', journal_cap)
end
for _, notice in ipairs(notices) do
  redis.call('XADD', outbox, '*', unpack(notice, 1, math.min(#notice, 1000)))
end
local counts = {}
for _, kind in ipairs(kinds) do
  for _, name in ipairs(kind.counters) do
    counts[name] = (counts[name] or 0) + kind.applied
  end
end
for name, count in pairs(counts) do
  if count > 0 then
    redis.pcall('HINCRBY', stats, name, count) --@ counters
  end
end
local change = 0
if #used > 0 and not unfit[13] then -- a dispatcher may not read them
  change = tonumber(redis.call('HGET', policy_uses, 'changes') or '') or 0
end
for _, policy in ipairs(used) do
  local is = not unfit[13] and redis.call('HGET', policy_uses, policy) or ''
  local models = tonumber(string.match(is, '^(%d+) %d+$') or '')
  if texts[policy] and redis.call('HSETNX', policies, policy, texts[policy]) == 1 then
    models = models or 0
  end
  models = models and models + users[policy]
  if models and models < 1 then --@ last use
    redis.call('HDEL', policies, policy)
    redis.pcall('HDEL', policy_uses, policy)
  elseif not unfit[13] then
    redis.call('HSET', policy_uses, policy, (models or '?') .. ' ' .. change + 1, 'changes', change + 1)
  end
end
if call and not unfit[11] and redis.call('LLEN', wake) == 0 then --@ wake
  redis.call('RPUSH', wake, '1')
end
codes[#codes + 1] = list_of(unfit)
return codes
