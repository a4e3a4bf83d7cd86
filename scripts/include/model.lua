-- Model: its hash, its payload and its history. An attempt that starts draws a ticket: its number in the order of all
-- that were ever started. A poller starts none.
local stats = KEYS[10]
local history_cap = tonumber(ARGV[5])
local tickets = uses.ticket and not unfit[10] and tonumber(redis.call('HGET', stats, 'start') or '') or 0

local function write_remove(item)
  redis.call('DEL', KEYS[item.first], KEYS[item.first + 1], KEYS[item.first + 2]) --@ remove
end

local function write_unknown(item)
  local unknown = item.unknown
  redis.call('HDEL', KEYS[item.first], unpack(unknown, 1, math.min(#unknown, 1000)))
end

local function write_payload(item)
  redis.call('SET', KEYS[item.first + 2], value_of(item, 'payload'))
end

local function write_history(item)
  local place, ended = item.first + 1, value_of(item, 'history')
  if not (item.instead and redis.pcall('LSET', KEYS[place], 0, ended).ok) then --@ instead
    local length = redis.pcall('LPUSH', KEYS[place], ended) --@ history
    if not is_wrong(item, length, place, 'list') and length > history_cap then
      redis.call('LTRIM', KEYS[place], 0, history_cap - 1) --@ history cap
    end
  end
end

local function write_attempts(item)
  local key, attempts = KEYS[item.first + 1], item.attempts
  redis.call('DEL', key) --@ past before
  for first, last in chunks(attempts) do
    redis.call('LPUSH', key, unpack(attempts, first, last)) --@ past
  end
end
