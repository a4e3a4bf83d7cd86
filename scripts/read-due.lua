-- Reads the clock, what is due or urgent, whose deadline has passed, whose freshness changes, and when any of it
-- happens next. It is also the heartbeat of a dispatcher, and shares the work among the living, so that they do not all
-- decide about the same models: by the order of their names, each reads a page of its own when there is more than one
-- page, and otherwise leaves what is there to those before it for a while.
--
-- Deadlines are judged only when workers could have spoken and were heard. What expires is left out from where a
-- message may stand in output or claimed that was pushed before its deadline; and for the grace after a gap in the
-- heartbeats of all dispatchers, when Redis may have been away, what had a deadline since shortly before that gap.
--
-- KEYS[1] <queue>:due zset ZCOUNT ZRANGEBYSCORE, uid -> refresh_at in Unix ms
-- KEYS[2] <queue>:running zset ZCOUNT ZRANGEBYSCORE, uid -> when its attempt expires in Unix ms
-- KEYS[3] <queue>-input list LLEN
-- KEYS[4] <queue>:dispatchers zset ZADD ZRANGEBYSCORE ZREMRANGEBYSCORE, owner -> last heartbeat in Unix ms
-- KEYS[5] <queue>:urgent zset ZCOUNT ZRANGEBYSCORE, uid -> refresh_at in Unix ms
-- KEYS[6] <queue>:front list LINDEX, what stood first in input
-- KEYS[7] <queue>:holds hash HGETALL, id -> JSON; and changes, how many there were
-- KEYS[8] <queue>:gates zset ZADD ZRANGEBYSCORE, gate -> when a dispatcher is to look at it in Unix ms
-- KEYS[9] <queue>:limits hash HGETALL, key or template -> JSON
-- KEYS[10] <queue>:calendars hash HGETALL, name -> JSON
-- KEYS[11] <queue>:stale_at zset EXISTS ZCOUNT ZRANGEBYSCORE, uid -> when its freshness changes next in Unix ms
-- KEYS[12] <queue>:heard hash HDEL HGETALL HSET, beat -> last heartbeat of any dispatcher in Unix ms; gap -> from when
--   to when there was none, in Unix ms; and what pollers note, see claim-messages.lua
-- KEYS[13] <queue>-output list LLEN
-- KEYS[14] <queue>:pollers zset ZSCORE, owner -> last heartbeat in Unix ms
-- ARGV[1] now in Unix ms, "" = the clock of Redis
-- ARGV[2] most uids of each kind
-- ARGV[3] owner, "" = it shares with nobody, and is not noted
-- ARGV[4] lease in ms: a dispatcher without a heartbeat for so long is dead
-- ARGV[5] how long a dispatcher leaves what is there to each one before it, in ms
-- ARGV[6] for how long after a gap nothing expires, in ms; 0 = a gap is none
-- Returns {now in Unix ms, entries in input, how many dispatchers share what is due, next due, next deadline and next
--   urgent start in Unix ms or "", {due uids}, {expired uids}, {urgent uids}, the front that was noted last or "",
--   {fields and values of holds}, {gates to look at}, until when the owner alone looks at them in Unix ms or "",
--   {fields and values of limits}, {those of calendars}, {uids whose freshness changes}, {which keys are of another
--   type}, up to when deadlines are judged in Unix ms}, lists with the oldest first. Of these keys, holds, limits and
--   calendars keep everything from starting, and the others count as empty
-- include: clock, types, wrong_types
local due, running, input, dispatchers, urgent = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local front, holds, gates, limits, calendars = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local stale_at, heard, output, pollers = KEYS[11], KEYS[12], KEYS[13], KEYS[14]
local now, limit = tonumber(clock(ARGV[1])), tonumber(ARGV[2])
local owner, lease, pause, grace = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])

-- Check
local _, wrong_types = wrong_type(header_types)
local stop = wrong_types[1] or wrong_types[2] or wrong_types[3]
if stop then
  return redis.error_reply('WRONGTYPE ' .. stop)
end
local starts = not (wrong_types[7] or wrong_types[9] or wrong_types[10])

local before, living = 0, 1
if owner ~= '' and not wrong_types[4] then
  redis.call('ZREMRANGEBYSCORE', dispatchers, '-inf', now - lease)
  redis.call('ZADD', dispatchers, now, owner) --@ heartbeat
  local others = redis.call('ZRANGEBYSCORE', dispatchers, '-inf', now)
  living = #others
  for _, other in ipairs(others) do
    if other < owner then
      before = before + 1 --@ rank
    end
  end
end
pause = pause * before

-- just_before is the millisecond before one that was noted. What lies ahead was noted before the clock was set back.
local function just_before(noted)
  local at = tonumber(noted or '') or 0
  return at <= now and at - 1 or 0
end

-- judged_to returns up to when deadlines are judged: all messages pushed until then are applied.
local function judged_to()
  local all, noted, at = redis.call('HGETALL', heard), {}, now
  for i = 1, #all, 2 do
    noted[all[i]] = all[i + 1]
    local poller = string.match(all[i], '^poller (.*)')
    if poller and (wrong_types[14] or not redis.call('ZSCORE', pollers, poller)) then
      redis.call('HDEL', heard, all[i])
    elseif poller then
      at = math.min(at, just_before(string.match(all[i + 1], '^%d+'))) --@ claimed
    end
  end
  if not wrong_types[13] and redis.call('LLEN', output) > 0 then
    at = math.min(at, just_before(noted.claimed)) --@ pushed
  end
  local beat, gap = tonumber(noted.beat), noted.gap
  if owner ~= '' and grace > 0 then
    if beat and now - beat > lease / 2 then
      gap = string.format('%.0f %.0f', beat, now)
      redis.call('HSET', heard, 'gap', gap) --@ gap
    end
    redis.call('HSET', heard, 'beat', now)
  end
  local from, to = string.match(gap or '', '^(%d+) (%d+)$')
  if from and now >= tonumber(to) and now < to + grace then --@ grace ends
    at = math.min(at, from - grace) --@ grace
  end
  return at
end
local judged = wrong_types[12] and now or judged_to()

-- read_page returns the page of a set that is the owner's, when it has to look for what comes next, and how much there
-- is up to an instant; of one that it is not to read nothing. Those before it look sooner. A page that it has not got
-- yet may come at any time, and what comes after that instant is looked for once a second.
local function read_page(set, reads, to)
  if not reads then
    return {}, '', 0
  end
  local count = living > 1 and redis.call('ZCOUNT', set, '-inf', to) or 0
  local crowded = count > limit
  local from, by = crowded and before * limit or 0, crowded and to or math.min(to, now - pause) --@ share
  local found = redis.call('ZRANGEBYSCORE', set, '-inf', by, 'LIMIT', from, limit)
  local next = redis.call('ZRANGEBYSCORE', set, '(' .. by, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
  if from > 0 and #found == 0 then
    next = now
  elseif next and to < now then
    next = math.max(next, now + 1000) --@ later
  end
  return found, next and string.format('%.0f', next + pause) or '', count
end
local is_due, next_due, due_count = read_page(due, true, now) --@ due
local expired, next_deadline = read_page(running, true, judged) --@ expired
local is_urgent, next_urgent, urgent_count = read_page(urgent, starts and not wrong_types[5], now) --@ urgent
-- Mostly no policy promises any freshness.
local ages, next_change = read_page(stale_at, not wrong_types[11] and redis.call('EXISTS', stale_at) == 1, now)

-- A gate is looked at by one dispatcher at a time. One that dies leaves it to another after a lease.
local looks = starts and not wrong_types[8]
local due_gates = looks and redis.call('ZRANGEBYSCORE', gates, '-inf', now, 'LIMIT', 0, limit) or {}
local alone = #due_gates > 0 and string.format('%.0f', now + lease) or ''
for _, gate in ipairs(due_gates) do
  redis.call('ZADD', gates, alone, gate) --@ alone
end
local next_gate = looks and redis.call('ZRANGEBYSCORE', gates, '-inf', '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
for _, next in ipairs({next_gate or '', next_change}) do
  if next ~= '' and (next_due == '' or tonumber(next) < tonumber(next_due)) then
    next_due = next
  end
end

local sharers = math.max(due_count, urgent_count) > limit and living or 1 --@ room
local noted = redis.pcall('LINDEX', front, -1) -- a key that holds something else keeps nobody from working
noted = type(noted) == 'string' and noted or ''
return {string.format('%.0f', now), redis.call('LLEN', input), sharers, next_due, next_deadline, next_urgent,
  starts and is_due or {}, expired, is_urgent, noted, starts and redis.pcall('HGETALL', holds) or {}, due_gates, alone,
  starts and redis.pcall('HGETALL', limits) or {}, starts and redis.pcall('HGETALL', calendars) or {}, ages,
  list_of(wrong_types), string.format('%.0f', judged)}
