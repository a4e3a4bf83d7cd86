-- What is written once for the batch.
local wake = KEYS[11]

local function write_counters()
  local counts = {}
  for _, kind in ipairs(kinds) do
    for _, name in ipairs(kind.counters) do
      counts[name] = (counts[name] or 0) + kind.applied
    end
  end
  for name, count in pairs(counts) do
    if count > 0 then
      redis.pcall('HINCRBY', stats, name, count) --@ counters
    end
  end
end

local function write_shared()
  write_indexes()
  write_groups()
  write_pushed()
  write_messages()
  write_commands()
  write_outbox()
  if is_told then
    redis.call('XTRIM', journal, 'MAXLEN', '~', journal_cap) --@ journal cap
  end
  write_counters()
  if wakes and not unfit[11] and redis.call('LLEN', wake) == 0 then --@ wake
    redis.call('RPUSH', wake, '1')
  end
end
