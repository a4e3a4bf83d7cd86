-- Blockers: a parked model stands among the models of what keeps it parked, which a dispatcher looks at when it may let
-- them go.
local gates = KEYS[19]

local function check_blocker(item)
  local place = place_of(item, 'blocker', 0)
  if is_wrong(item, redis.pcall('ZCARD', KEYS[place]), place, 'zset') then
    return 9
  end
end

local function write_blockers(item)
  if item.unblocks then
    local place = place_of(item, 'unblocks', 0)
    is_wrong(item, redis.pcall('ZREM', KEYS[place], item.uid), place, 'zset') --@ leave the gate
  end
  if item.blocker then
    redis.call('ZADD', KEYS[place_of(item, 'blocker', 0)], item.parked, item.uid) --@ gate
    redis.call('ZADD', gates, 'LT', item.recheck, item.blocker) --@ look
  end
end
