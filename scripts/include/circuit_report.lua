-- report_circuit tells journal, outbox and counters that a circuit has "opened" or "closed": once, not for each of its
-- models. What else there is to say stands behind, as names and values.
local function report_circuit(became, whose, since, most, ...)
  local event = {'event', 'circuit_' .. became, 'key', whose, 'at', since, ...}
  if tonumber(most) > 0 then
    redis.call('XADD', journal, 'MAXLEN', '~', most, '*', unpack(event))
  end
  redis.call('XADD', outbox, '*', unpack(event))
  redis.pcall('HINCRBY', stats, 'circuit_' .. became, 1)
end
