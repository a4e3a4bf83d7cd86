-- Batch: its instant, its keys of the wrong type, and its absent keys.
local instant, now = ARGV[1], tonumber(ARGV[2])
local day = 86400
local places, wrong_types = 0, {}
local is_wrong, absent = {}, {} -- by key
for must, expected in string.gmatch(ARGV[3], '(!?)(%a+)') do
  places = places + 1
  local key = KEYS[places]
  local found = redis.pcall('TYPE', key).ok
  absent[key] = found == 'none'
  wrong_types[places] = found ~= expected and not absent[key] and misfit(places, expected) or nil
  if must == '!' and wrong_types[places] then
    return redis.error_reply('WRONGTYPE ' .. wrong_types[places])
  end
  is_wrong[key] = wrong_types[places]
end
local wakes = false -- a dispatcher is called
