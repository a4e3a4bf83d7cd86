-- Model: its hash, its payload and its history. An attempt that starts draws a ticket: its number in the order of all
-- that were ever started.
local stats = KEYS[10]
local history_cap = tonumber(ARGV[5])
local tickets = 0
for _, kind in ipairs(kinds) do
  if kind.ticket and not unfit[10] then -- a poller starts none
    tickets = tonumber(redis.call('HGET', stats, 'start') or '') or 0
  end
end

-- write_own writes a value that only this script knows, behind the fields of the item and of its entry in the journal.
local function write_own(item, value)
  item.set[#item.set] = value
  item.entry[item.entry_own] = value
end

local function draw_ticket(item)
  tickets = tickets + 1 --@ ticket
  write_own(item, string.format('%d', unfit[10] and 0 or tickets))
end

local function write_model(item)
  local hash, set, delete = KEYS[item.first], item.set, item.delete
  if item.remove then
    redis.call('DEL', hash, KEYS[item.first + 1], KEYS[item.first + 2]) --@ remove
  end
  if item.ticket then
    draw_ticket(item)
  end
  if #set > 0 then
    redis.call('HSET', hash, unpack(set, 1, math.min(#set, 1000)))
  end
  if #delete > 0 then
    redis.call('HDEL', hash, unpack(delete, 1, math.min(#delete, 1000))) --@ delete fields
  end
  local unknown = item.unknown
  if unknown then
    redis.call('HDEL', hash, unpack(unknown, 1, math.min(#unknown, 1000)))
  end
  if item.payload then
    redis.call('SET', KEYS[item.first + 2], item.payload)
  end
end

local function write_history(item)
  local place, ended, attempts = item.first + 1, item.history, item.attempts
  if ended and not (item.instead and redis.pcall('LSET', KEYS[place], 0, ended).ok) then --@ instead
    local length = redis.pcall('LPUSH', KEYS[place], ended) --@ history
    if not is_wrong(item, length, place, 'list') and length > history_cap then
      redis.call('LTRIM', KEYS[place], 0, history_cap - 1) --@ history cap
    end
  end
  if attempts then
    redis.call('DEL', KEYS[place]) --@ past before
    for first, last in chunks(attempts) do
      redis.call('LPUSH', KEYS[place], unpack(attempts, first, last)) --@ past
    end
  end
end
