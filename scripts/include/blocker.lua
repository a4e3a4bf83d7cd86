-- Blockers: a parked model stands among the models of what keeps it parked, which a dispatcher looks at when it may let
-- them go.
local gates = KEYS[19]

local function check_blocker(item)
  local place = place_of(item, 'blocker', 0)
  if is_wrong(item, redis.pcall('ZCARD', KEYS[place]), place, 'zset') then
    return 9
  end
end

local function write_blocker(item)
  redis.call('ZADD', KEYS[place_of(item, 'blocker', 0)], value_of(item, 'parked'), item.uid) --@ gate
  redis.call('ZADD', gates, 'LT', value_of(item, 'recheck'), value_of(item, 'blocker')) --@ look
end

local function write_unblocks(item)
  local place = place_of(item, 'unblocks', 0)
  is_wrong(item, redis.pcall('ZREM', KEYS[place], item.uid), place, 'zset') --@ leave the gate
end
