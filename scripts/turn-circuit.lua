-- Opens or closes the circuit of a key by hand, unless somebody has turned it since it was read. A change is journaled
-- and published, with who made it and why. The counts are forgotten, and the circuit is rechecked immediately.
--
-- KEYS[1] <queue>:circuit:<name> hash HDEL HGET HINCRBY HSET PEXPIRE
-- KEYS[2] <queue>:gates zset ZADD, blocker -> when a dispatcher rechecks it, in Unix ms
-- KEYS[3] <queue>:stats hash HDEL HINCRBY HKEYS
-- KEYS[4] <queue>:journal stream XADD
-- KEYS[5] <queue>:outbox stream XADD
-- KEYS[6] <queue>:forwarded hash HGET HINCRBY, changes -> how many there were of what operators set
-- KEYS[7] one of <queue>:deeds stream XADD, <queue>:journal stream XADD: this if nobody is to be named
-- ARGV[1] opened or closed
-- ARGV[2] its key; queue = the circuit of the queue, which counts in stats
-- ARGV[3] its blocker
-- ARGV[4] who does it
-- ARGV[5] now in Unix ms
-- ARGV[6] the same in RFC 3339
-- ARGV[7] from when on it may be tried, in RFC 3339; "" = it closes
-- ARGV[8] for how many ms it is kept; "" = for ever
-- ARGV[9] journal cap, in entries; below 1: there is no journal
-- ARGV[10] why it is opened, for people; "" = nobody says
-- ARGV[11] how many changes there were when it was read, "" = none
-- ARGV[12] since when it was open then, in RFC 3339; "" = it was closed
-- ARGV[13] what is done, for the deeds, see include/deed.lua, "" = nobody is to be named
-- Returns 1: it has changed; 2: it was so before; 0: something has changed since it was read
-- include: check, deed
local circuit, blockers, stats, journal, outbox, forwarded = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local change, name, blocker, by, now = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local text, probe_at, kept, cap, reason = ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10]
local seen, was, deeds, deed = ARGV[11], ARGV[12], KEYS[7], ARGV[13]
-- include: circuit_turn

-- Check
local is, opens = redis.call('HGET', circuit, 'opened_at') or '', change == 'opened'
if is ~= was or (redis.call('HGET', forwarded, 'changes') or '') ~= seen then --@ turned since
  return 0
end

-- Write
redis.call('HINCRBY', forwarded, 'changes', 1)
if opens or is ~= '' then
  write_deed(deeds, deed)
end
for _, field in ipairs(name == 'queue' and redis.call('HKEYS', stats) or {}) do
  if string.sub(field, 1, 1) == '@' then
    redis.call('HDEL', stats, field) --@ forget
  end
end
redis.call('HDEL', circuit, 'probe', 'recent', 'reason')
local why = {'by', by}
if reason ~= '' then
  why = {'by', by, 'reason', reason}
end
if opens then
  redis.call('HSET', circuit, 'probe_at', probe_at, unpack(why))
end
if opens and name ~= 'queue' then -- a listed one is shown to people even if no model waits
  redis.call('ZADD', blockers, now, blocker) --@ listed by hand
else
  redis.call('ZADD', blockers, 'XX', now, blocker)
end
local changes = (is ~= '') ~= opens
if changes then --@ notified once
  turn_circuit(circuit, change, name, text, cap, unpack(why))
end
if kept ~= '' then
  redis.call('PEXPIRE', circuit, kept)
end
return changes and 1 or 2
