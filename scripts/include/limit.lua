-- Limits: an attempt takes a place in the limits of its keys and slots of their rates, and gives the places back.
local function check_limits(item)
  local limited, acquires = false, item.acquires
  for i = 1, #acquires, 4 do
    local max, before, after = acquires[i], acquires[i + 1], acquires[i + 2]
    local limit = place_of(item, 'acquires', (i - 1) / 2)
    local count, slots = redis.pcall('ZCARD', KEYS[limit]), after ~= '' and redis.pcall('GET', KEYS[limit + 1])
    if is_wrong(item, count, limit, 'zset') or is_wrong(item, slots, limit + 1, 'string') then
      return 9
    end
    limited = limited or max ~= '' and count >= tonumber(max) --@ full key
    limited = limited or after ~= '' and (slots or '') ~= before --@ slot
  end
  return limited and 8 or nil
end

local function write_acquires(item)
  local acquires = item.acquires
  for i = 1, #acquires, 4 do
    local after, lasts = acquires[i + 2], acquires[i + 3]
    local limit = place_of(item, 'acquires', (i - 1) / 2)
    if item.running then
      redis.call('ZADD', KEYS[limit], value_of(item, 'running'), item.uid) --@ take the key
    end
    if after ~= '' then
      redis.call('SET', KEYS[limit + 1], after, 'PX', lasts) --@ take the slot
    end
  end
end

-- close_rate closes a key until an instant in Unix us. The slots that are reserved come as much later.
local function close_rate(item, place, till)
  local is = redis.pcall('GET', KEYS[place])
  if is_wrong(item, is, place, 'string') then
    return
  end
  local free, closed = string.match(is or '', '^(%d*) ?(%d*)$')
  free, closed = tonumber(free or '') or 0, tonumber(closed or '') or 0
  local open = math.max(closed, 1000 * now)
  if open < till then
    free = math.max(free, open) + till - open
    local slots, lasts = string.format('%.0f %.0f', free, till), math.ceil((free - 1000 * now) / 1000)
    redis.call('SET', KEYS[place], slots, 'PX', lasts) --@ close the key
  end
end

-- write_frees gives back what an attempt has taken. What waits for it is looked at at once.
local function write_frees(item)
  for i, blocker in ipairs(item.frees) do
    local place = place_of(item, 'frees', i - 1)
    is_wrong(item, redis.pcall('ZREM', KEYS[place], item.uid), place, 'zset') --@ free the key
    wakes = not unfit[19] and redis.call('ZADD', gates, 'XX', 'CH', now, blocker) == 1 or wakes --@ freed
  end
end

local function write_extends(item)
  for i = 0, item.running and item.extends - 1 or -1 do
    local place = place_of(item, 'extends', i)
    is_wrong(item, redis.pcall('ZADD', KEYS[place], value_of(item, 'running'), item.uid), place, 'zset') --@ extend
  end
end

local function write_closes(item)
  for i = 0, item.closes - 1 do
    close_rate(item, place_of(item, 'closes', i), tonumber(value_of(item, 'closes')))
  end
end
