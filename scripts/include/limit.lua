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

-- write_frees gives back what an attempt has taken. What waits for it is looked at at once.
local write_frees = each_key('frees', 'zset', function(key, item, n)
  wakes = not unfit[19] and redis.call('ZADD', gates, 'XX', 'CH', now, item.frees[n]) == 1 or wakes --@ freed
  return redis.pcall('ZREM', key, item.uid) --@ free the key
end)

local write_extends = each_key('extends', 'zset', function(key, item)
  return redis.pcall('ZADD', key, value_of(item, 'extends'), item.uid) --@ extend
end)

-- write_closes closes keys until an instant in Unix us; by whom follows. Slots that are reserved come as much later.
-- Until when the pace alone has closed them stays behind a slash, for who opens them.
local write_closes = each_key('closes', 'string', function(key, item)
  local is, till, by = redis.pcall('GET', key), string.match(value_of(item, 'closes'), '^(%d+)(.*)$')
  local free, closed, more = string.match(type(is) == 'string' and is or '', '^(%d*) ?(%d*)(.*)$')
  local paced = more == '' and closed ~= '' and '/' .. closed or string.match(more, '^/%d+') or ''
  free, closed = tonumber(free) or 0, tonumber(closed) or 0
  local open = math.max(closed, 1000 * now)
  till = tonumber(till)
  if open < till and type(is) ~= 'table' then
    free = math.max(free, open) + till - open
    local lasts = math.ceil((free - 1000 * now) / 1000)
    local slots = string.format('%.0f %.0f', free, till) .. paced .. by
    redis.call('SET', key, slots, 'PX', lasts) --@ close the key
  end
  return is
end)
