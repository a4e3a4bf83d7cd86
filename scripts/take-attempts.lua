-- Moves the oldest entries of the input list into the owner's taken list, where they stand until they are answered or handed back.
-- It is also a sign of life. An owner that was forgotten gets nothing. To repeat it after a lost reply is safe: if more stand there
-- than the owner knows of, nothing is moved and it gets all of them.
-- KEYS[1] <queue>-input list   KEYS[2] <queue>:taken:<owner> list   KEYS[3] <queue>:workers zset, owner -> last sign of life ms
-- ARGV[1] now in Unix ms, "" = the clock of Redis   ARGV[2] owner   ARGV[3] 1 = a new owner, "" = one that has been here before
-- ARGV[4] most entries to move   ARGV[5] how many entries the owner knows of; -1: it is not sure
-- Returns {now ms, what follows: 0 nothing as the owner is forgotten, 1 what was moved, 2 all that stands there, {entries, oldest first}}
local input, taken, workers = KEYS[1], KEYS[2], KEYS[3]
local now, owner, new, most, known = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
if now == '' then
  local time = redis.call('TIME')
  now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
end
if new == '' and not redis.call('ZSCORE', workers, owner) then return {now, 0, {}} end
redis.call('ZADD', workers, now, owner)
if redis.call('LLEN', taken) > known then return {now, 2, redis.call('LRANGE', taken, 0, -1)} end
local entries = {}
for _ = 1, most do
  local entry = redis.call('LMOVE', input, taken, 'LEFT', 'RIGHT')
  if not entry then break end
  entries[#entries + 1] = entry
end
return {now, 1, entries}
