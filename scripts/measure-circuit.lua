-- Counts the attempts in the window of the circuit of the queue, forgets older ones, and opens or closes the circuit.
-- One that somebody has opened may close from its probe_at on. If the circuit is off, nothing happens.
--
-- KEYS[1] <queue>:circuit:queue hash HDEL HINCRBY HMGET HSET
-- KEYS[2] <queue>:stats hash HDEL HGETALL HINCRBY
-- KEYS[3] <queue>:journal stream XADD
-- KEYS[4] <queue>:outbox stream XADD
-- ARGV[1] now in Unix ms
-- ARGV[2] the same in RFC 3339
-- ARGV[3] journal cap, in entries; below 1: there is no journal
-- Returns "opened" or "closed"; "": nothing has changed
-- include: check, chunks
local circuit, stats, journal, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now, text, cap = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
-- include: circuit_turn

local set = redis.call('HMGET', circuit, 'on', 'share', 'window_ms', 'min', 'opened_at', 'probe_at')
local share, window, min, opened, probe = tonumber(set[2]), tonumber(set[3]), tonumber(set[4]), set[5], set[6]
if set[1] ~= '1' or not (share and window and min) then
  return ''
end

-- Each tenth of the window is counted by itself: @ok.<n> and @failed.<n>, where n is the Unix ms at which it began. A
-- tenth that begins more than a window ahead is from before the clock was set back.
local count, old = {ok = 0, failed = 0}, {}
local fields = redis.call('HGETALL', stats)
for i = 1, #fields, 2 do
  local outcome, began = string.match(fields[i], '^@(%a+)%.(%d+)$')
  local age = outcome and now - tonumber(began)
  if age and (age >= window or age < -window) then --@ oldest
    old[#old + 1] = fields[i]
  elseif count[outcome] then
    count[outcome] = count[outcome] + (tonumber(fields[i + 1]) or 0)
  end
end
local total, changed = count.ok + count.failed, ''
local probed = not probe or probe <= text --@ probed
if not opened and total >= min and count.failed >= share * total then --@ open
  changed = 'opened'
elseif opened and probed and total > 0 and count.failed < share * total / 2 then --@ close
  changed = 'closed'
end

-- Write
for first, last in chunks(old) do
  redis.call('HDEL', stats, unpack(old, first, last))
end
if changed ~= '' then
  turn_circuit(circuit, changed, 'queue', text, cap, 'successes', count.ok, 'failures', count.failed)
end
return changed
