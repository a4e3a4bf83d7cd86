-- Logs: what attempts have said. Of all models together the last ones are kept.
local write_log = each_key('log', 'list', function(logs, item)
  local entry, cap = item.log[1], tonumber(item.log[2])
  local length = redis.pcall('RPUSH', logs, entry) --@ log
  if type(length) == 'number' and length > cap then
    redis.call('LTRIM', logs, -cap, -1) --@ log cap
  end
  return length
end)
