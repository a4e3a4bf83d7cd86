-- Reads the clock, the models that are due or urgent, whose deadline has passed or whose freshness changes, and when
-- any of it happens next. It is also the heartbeat of a dispatcher. Living dispatchers share the work, so that they do
-- not all decide about the same models: in the order of their names, each reads its own page if there is more than one
-- page; otherwise each leaves the models to the dispatchers before it for a while.
--
-- A deadline is judged only when its worker could have spoken and would have been heard. So a model does not expire
-- while output or claimed may hold a message from before its deadline. When all dispatchers had a gap in their
-- heartbeats, Redis may have been away: until the grace is over, deadlines since shortly before the gap do not count.
--
-- KEYS[1] <queue>:due zset ZCOUNT ZRANGE ZRANGEBYSCORE, uid -> refresh_at in Unix ms
-- KEYS[2] <queue>:running zset ZCOUNT ZRANGEBYSCORE, uid -> when its attempt expires in Unix ms
-- KEYS[3] <queue>-input list LLEN
-- KEYS[4] <queue>:dispatchers zset ZADD ZRANGEBYSCORE ZREMRANGEBYSCORE, owner -> last heartbeat in Unix ms
-- KEYS[5] <queue>:urgent zset ZCOUNT ZRANGE ZRANGEBYSCORE, uid -> refresh_at in Unix ms
-- KEYS[6] <queue>:front list LINDEX, samples of the head of input
-- KEYS[7] <queue>:holds hash HGETALL, id -> JSON; and changes, how many there were
-- KEYS[8] <queue>:gates zset ZADD ZRANGEBYSCORE, blocker -> when a dispatcher rechecks it, in Unix ms
-- KEYS[9] <queue>:limits hash HGETALL, key or template -> JSON
-- KEYS[10] <queue>:calendars hash HGETALL, name -> JSON
-- KEYS[11] <queue>:stale_at zset ZCOUNT ZRANGEBYSCORE, uid -> when its freshness changes next in Unix ms
-- KEYS[12] <queue>:heard hash HDEL HGETALL HSET, beat -> last heartbeat of any dispatcher in Unix ms; gap -> from when
--   to when there was none, in Unix ms; window -> "N UNTIL", what the last dispatcher lets wait, and until when that
--   holds, in Unix ms; and what pollers note, see claim-messages.lua
-- KEYS[13] <queue>-output list LLEN
-- KEYS[14] <queue>:pollers zset ZSCORE, owner -> last heartbeat in Unix ms
-- ARGV[1] now in Unix ms, "" = the clock of Redis
-- ARGV[2] most uids of each kind
-- ARGV[3] owner, "" = it shares with nobody, and is not noted
-- ARGV[4] lease in ms: a dispatcher without a heartbeat for so long is dead
-- ARGV[5] how long a dispatcher leaves the models to each one before it, in ms
-- ARGV[6] for how long after a gap nothing expires, in ms; 0 = a gap is none
-- ARGV[7] how many entries the owner lets wait in input
-- ARGV[8] 1 = half of a full page of models to start is spread over all of them, "" = it has the oldest
-- Returns {now in Unix ms, entries in input, how many dispatchers share due models, next due, next deadline and next
--   urgent start in Unix ms or "", {due uids}, {expired uids}, {urgent uids}, the last sample of the head or "",
--   {fields and values of holds}, {blockers to recheck}, until when the owner alone rechecks them in Unix ms or "",
--   {fields and values of limits}, {fields and values of calendars}, {uids whose freshness changes}, {keys of the wrong
--   type}, up to when deadlines are judged in Unix ms}, lists with the oldest first. If holds, limits or calendars have
--   the wrong type, nothing starts; other such keys count as empty
-- include: clock, read, wrong_types
local due, running, input, dispatchers, urgent = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local front, holds, blockers, limits, calendars = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local stale_at, heard, output, pollers = KEYS[11], KEYS[12], KEYS[13], KEYS[14]
local now, limit = tonumber(clock(ARGV[1])), tonumber(ARGV[2])
local owner, lease, pause, grace = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local spreads = ARGV[8] == '1'

-- score_of reads a score. Not every Lua knows an infinite one.
local function score_of(text)
  return tonumber(text) or string.find(text, '^-') and -math.huge or math.huge
end

-- Check. Of each set few members are read: mostly all that count, and the next one.
local few = 4
local function read_few(place, set)
  return known(place, redis.pcall('ZRANGEBYSCORE', set, '-inf', '+inf', 'WITHSCORES', 'LIMIT', 0, few))
end
local few_due, few_running, queued = read_few(1, due), read_few(2, running), known(3, redis.pcall('LLEN', input))
local stop = wrong_types[1] or wrong_types[2] or wrong_types[3]
local others = known(4, redis.pcall('ZRANGEBYSCORE', dispatchers, '-inf', now, 'WITHSCORES'))
local few_urgent, few_blockers, few_changes = read_few(5, urgent), read_few(8, blockers), read_few(11, stale_at)
local head = known(6, redis.pcall('LINDEX', front, -1))
local all_holds, all_limits = known(7, redis.pcall('HGETALL', holds)), known(9, redis.pcall('HGETALL', limits))
local all_calendars = known(10, redis.pcall('HGETALL', calendars))
local notes, pushed = known(12, redis.pcall('HGETALL', heard)), known(13, redis.pcall('LLEN', output)) or 0
if failure or stop then
  return failure or redis.error_reply('WRONGTYPE ' .. stop)
end
local starts = all_holds and all_limits and all_calendars

-- Write
local before, living = 0, 1
if owner ~= '' and others then
  if others[2] and score_of(others[2]) <= now - lease then
    redis.call('ZREMRANGEBYSCORE', dispatchers, '-inf', now - lease)
  end
  for i = 1, #others, 2 do
    if others[i] ~= owner and score_of(others[i + 1]) > now - lease then
      living = living + 1
      before = others[i] < owner and before + 1 or before --@ rank
    end
  end
  redis.call('ZADD', dispatchers, now, owner) --@ heartbeat
end
pause = pause * before

-- include: judged
local judged = notes and judged_to() or now

-- include: page
local is_due, next_due, due_count = read_page(due, few_due, now) --@ due
local expired, next_deadline = read_page(running, few_running, judged) --@ expired
local is_urgent, next_urgent, urgent_count = read_page(urgent, starts and few_urgent, now) --@ urgent
local changed, next_change = read_page(stale_at, few_changes, now)

-- One dispatcher at a time rechecks a blocker. If it dies, another takes over after a lease.
local to_recheck, recheck_at = split(starts and few_blockers or {}, now)
if #to_recheck == few or #to_recheck > limit then -- there may be more
  to_recheck = redis.call('ZRANGEBYSCORE', blockers, '-inf', now, 'LIMIT', 0, limit)
  recheck_at = redis.call('ZRANGEBYSCORE', blockers, '-inf', '+inf', 'WITHSCORES', 'LIMIT', #to_recheck, 1)[2]
end
local alone = #to_recheck > 0 and string.format('%.0f', now + lease) or ''
for _, blocker in ipairs(to_recheck) do
  redis.call('ZADD', blockers, alone, blocker) --@ alone
end
recheck_at = math.min(recheck_at and score_of(recheck_at) or math.huge, tonumber(alone) or math.huge)
if recheck_at < (tonumber(next_change) or math.huge) then
  next_change = string.format('%.0f', recheck_at)
end
if next_change ~= '' and (next_due == '' or tonumber(next_change) < tonumber(next_due)) then
  next_due = next_change
end

local sharers = math.max(due_count, urgent_count) > limit and living or 1 --@ room
return {string.format('%.0f', now), queued, sharers, next_due, next_deadline, next_urgent, starts and is_due or {},
  expired, is_urgent, head or '', starts and all_holds or {}, to_recheck, alone, starts and all_limits or {},
  starts and all_calendars or {}, changed, list_of(wrong_types), string.format('%.0f', judged)}
