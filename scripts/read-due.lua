-- Reads the clock, the models that are due or urgent, whose deadline has passed or whose freshness changes, and when
-- any of it happens next. It is also the heartbeat of a dispatcher. Living dispatchers share the work, so that they do
-- not all decide about the same models: in the order of their names, each reads its own page if there is more than one
-- page; otherwise each leaves the models to the dispatchers before it for a while.
--
-- A deadline is judged only when its worker could have spoken and would have been heard. So a model does not expire
-- while output or claimed may hold a message from before its deadline. When all dispatchers had a gap in their
-- heartbeats, Redis may have been away: until the grace is over, deadlines since shortly before the gap do not count.
--
-- KEYS[1] <queue>:due zset ZCOUNT ZRANGEBYSCORE, uid -> refresh_at in Unix ms
-- KEYS[2] <queue>:running zset ZCOUNT ZRANGEBYSCORE, uid -> when its attempt expires in Unix ms
-- KEYS[3] <queue>-input list LLEN
-- KEYS[4] <queue>:dispatchers zset ZADD ZRANGEBYSCORE ZREMRANGEBYSCORE, owner -> last heartbeat in Unix ms
-- KEYS[5] <queue>:urgent zset ZCOUNT ZRANGEBYSCORE, uid -> refresh_at in Unix ms
-- KEYS[6] <queue>:front list LINDEX, samples of the head of input
-- KEYS[7] <queue>:holds hash HGETALL, id -> JSON; and changes, how many there were
-- KEYS[8] <queue>:gates zset ZADD ZRANGEBYSCORE, blocker -> when a dispatcher rechecks it, in Unix ms
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
-- ARGV[5] how long a dispatcher leaves the models to each one before it, in ms
-- ARGV[6] for how long after a gap nothing expires, in ms; 0 = a gap is none
-- Returns {now in Unix ms, entries in input, how many dispatchers share due models, next due, next deadline and next
--   urgent start in Unix ms or "", {due uids}, {expired uids}, {urgent uids}, the last sample of the head or "",
--   {fields and values of holds}, {blockers to recheck}, until when the owner alone rechecks them in Unix ms or "",
--   {fields and values of limits}, {fields and values of calendars}, {uids whose freshness changes}, {keys of the wrong
--   type}, up to when deadlines are judged in Unix ms}, lists with the oldest first. If holds, limits or calendars have
--   the wrong type, nothing starts; other such keys count as empty
-- include: clock, types, wrong_types
local due, running, input, dispatchers, urgent = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local front, holds, blockers, limits, calendars = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
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

-- just_before returns the millisecond before a noted one. One that lies ahead is from before the clock was set back.
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

-- read_page returns the owner's page of a set, when the owner reads again, and how many members there are up to an
-- instant. It returns nothing of a set that is not read. Dispatchers before the owner read sooner. A page that does not
-- exist yet may fill at any time; members after that instant are read once a second.
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
local changed, next_change = read_page(stale_at, not wrong_types[11] and redis.call('EXISTS', stale_at) == 1, now)

-- One dispatcher at a time rechecks a blocker. If it dies, another takes over after a lease.
local rechecks = starts and not wrong_types[8]
local to_recheck = rechecks and redis.call('ZRANGEBYSCORE', blockers, '-inf', now, 'LIMIT', 0, limit) or {}
local alone = #to_recheck > 0 and string.format('%.0f', now + lease) or ''
for _, blocker in ipairs(to_recheck) do
  redis.call('ZADD', blockers, alone, blocker) --@ alone
end
local recheck_at = rechecks and redis.call('ZRANGEBYSCORE', blockers, '-inf', '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
for _, next in ipairs({recheck_at or '', next_change}) do
  if next ~= '' and (next_due == '' or tonumber(next) < tonumber(next_due)) then
    next_due = next
  end
end

local sharers = math.max(due_count, urgent_count) > limit and living or 1 --@ room
local noted = redis.pcall('LINDEX', front, -1) -- a key of the wrong type stops nobody
noted = type(noted) == 'string' and noted or ''
return {string.format('%.0f', now), redis.call('LLEN', input), sharers, next_due, next_deadline, next_urgent,
  starts and is_due or {}, expired, is_urgent, noted, starts and redis.pcall('HGETALL', holds) or {}, to_recheck, alone,
  starts and redis.pcall('HGETALL', limits) or {}, starts and redis.pcall('HGETALL', calendars) or {}, changed,
  list_of(wrong_types), string.format('%.0f', judged)}
