-- turn_circuit makes a circuit "opened" or "closed", and writes that to journal, outbox and counters: once, not for
-- each of its models. Further names and values follow.
local function turn_circuit(state, became, whose, since, most, ...)
  if became == 'closed' then
    redis.call('HDEL', state, 'opened_at', 'probe_at', 'probe', 'recent', 'by', 'reason') --@ circuit closes
  else
    redis.call('HSET', state, 'opened_at', since) --@ circuit opens
    redis.call('HINCRBY', state, 'opened', 1)
  end
  local event = {'event', 'circuit_' .. became, 'key', whose, 'at', since, ...}
  if tonumber(most) > 0 then
    redis.call('XADD', journal, 'MAXLEN', '~', most, '*', unpack(event))
  end
  redis.call('XADD', outbox, '*', unpack(event))
  redis.pcall('HINCRBY', stats, 'circuit_' .. became, 1)
end
