-- Circuits of keys: the end of an attempt counts for the circuit of its key. An open one is tried by a probe, which
-- alone settles it.
local function check_probe(item)
  local place = place_of(item, 'probe', 0)
  local state = redis.pcall('HMGET', KEYS[place], 'opened_at', 'probe')
  if is_wrong(item, state, place, 'hash') then
    return 9
  end
  if not state[1] or state[2] and redis.call('ZSCORE', running, state[2]) then --@ one probe
    return 8
  end
end

local function write_probe(item)
  redis.call('HSET', KEYS[place_of(item, 'probe', 0)], 'probe', item.uid) --@ probe
end

local write_circuit = each_key('circuit', 'hash', function(state, item)
  local blocker, key, outcome, failures, of, probe_at, probe_ms = unpack(item.circuit, 1, 7)
  local is = redis.pcall('HMGET', state, 'recent', 'opened_at', 'probe')
  if is.err then
    return is
  end
  local recent = string.sub((is[1] or '') .. outcome, -tonumber(of))
  local _, failed = string.gsub(recent, '1', '')
  if outcome ~= '' then
    redis.call('HSET', state, 'recent', recent)
  end
  if not is[2] then -- one that was opened by hand may have to be kept for longer
    redis.call('EXPIRE', state, 7 * day)
  end
  if is[2] and is[3] ~= item.uid then --@ probe alone
    return
  end
  local opens = not is[2] and outcome ~= '' and failed >= tonumber(failures)
  if is[2] then
    redis.call('HDEL', state, 'probe') --@ probe anew
    local recheck = outcome == '0' and now or tonumber(probe_ms)
    redis.call('ZADD', gates, 'XX', recheck, blocker)
    wakes = wakes or recheck <= now
  end
  if opens or is[2] and outcome ~= '0' then
    redis.call('HSET', state, 'probe_at', probe_at) --@ stay open
  end
  if opens then
    redis.call('ZADD', gates, 'NX', probe_ms, blocker) --@ listed
  end
  if opens or is[2] and outcome == '0' then
    turn_circuit(state, opens and 'opened' or 'closed', key, instant, journal_cap)
  end
end)
