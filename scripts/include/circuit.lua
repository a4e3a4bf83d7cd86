-- Circuits of keys: the end of an attempt counts for the circuit of its key. An open one is tried by a probe, which
-- alone settles it.
function verbs.probed(circuit, running)
  local state = redis.pcall('HMGET', circuit, 'opened_at', 'probe')
  if state.err then
    return state
  end
  return not state[1] or state[2] and redis.call('ZSCORE', running, state[2]) --@ one probe
end

function verbs.count(state, blockers, blocker, key, outcome, failures, of, probe_at, probe_ms)
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
  if is[2] and is[3] ~= subject then --@ probe alone
    return
  end
  local opens = not is[2] and outcome ~= '' and failed >= tonumber(failures)
  if is[2] then
    redis.call('HDEL', state, 'probe') --@ probe anew
    local recheck_at = outcome == '0' and now or tonumber(probe_ms)
    redis.call('ZADD', blockers, 'XX', recheck_at, blocker)
    wakes = wakes or recheck_at <= now
  end
  if opens or is[2] and outcome ~= '0' then
    redis.call('HSET', state, 'probe_at', probe_at) --@ stay open
  end
  if opens then
    redis.call('ZADD', blockers, 'NX', probe_ms, blocker) --@ listed
  end
  if opens or is[2] and outcome == '0' then
    turn_circuit(state, opens and 'opened' or 'closed', key, instant, journal_cap)
  end
end
