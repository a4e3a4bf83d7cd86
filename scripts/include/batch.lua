-- Batch: its instant, which of its keys are of another type, and which are not there.
local instant, now = ARGV[1], tonumber(ARGV[2])
local day = 86400
local places, wrong_types = 0, {}
local is_wrong, absent = {}, {} -- by key
for must, kind in string.gmatch(ARGV[3], '(!?)(%a+)') do
  places = places + 1
  local key = KEYS[places]
  local found = redis.pcall('TYPE', key).ok
  absent[key] = found == 'none'
  wrong_types[places] = found ~= kind and not absent[key] and misfit(places, kind) or nil
  if must == '!' and wrong_types[places] then
    return redis.error_reply('WRONGTYPE ' .. wrong_types[places])
  end
  is_wrong[key] = wrong_types[places]
end
local wakes = false -- a dispatcher is called
