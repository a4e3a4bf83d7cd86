-- Blockers: a parked model stands among the models of what keeps it parked, which a dispatcher looks at when it may let
-- them go. Many of a batch may wait for one blocker: they are written together, as indexes are.
local gates = KEYS[19]
local waiting, looks = {}, {} -- indexes of those that wait, by key; when blockers are looked at, as it was written last

local function check_blocker(item)
  local place = place_of(item, 'blocker', 0)
  return not waiting[KEYS[place]] and is_wrong(item, redis.pcall('ZCARD', KEYS[place]), place, 'zset') and 9 or nil
end

local function write_blocker(item)
  local key, blocker, recheck = KEYS[place_of(item, 'blocker', 0)], value_of(item, 'blocker'), value_of(item, 'recheck')
  if not waiting[key] then
    waiting[key] = {key = key, add = {}, remove = {}}
    table.insert(indexes, waiting[key]) --@ gate
  end
  local add = waiting[key].add
  add[#add + 1] = value_of(item, 'parked')
  add[#add + 1] = item.uid
  if looks[blocker] ~= recheck then
    redis.call('ZADD', gates, 'LT', recheck, blocker) --@ look
    looks[blocker] = recheck
  end
end

local write_unblocks = each_key('unblocks', 'zset', function(key, item)
  return redis.pcall('ZREM', key, item.uid) --@ leave the gate
end)
