-- Batch: its instant, its keys of the wrong type, and its absent keys.
local instant, now = ARGV[1], tonumber(ARGV[2])
local day = 86400
local places, wrong_types = 0, {}
local is_wrong, absent, asked = {}, {}, {} -- by key
for must, expected in string.gmatch(ARGV[3], '(%p?)(%a+)') do
  places = places + 1
  local key = KEYS[places]
  local found = must ~= '?' and redis.pcall('TYPE', key).ok
  absent[key], asked[key] = found == 'none', {places, expected}
  wrong_types[places] = found and found ~= expected and not absent[key] and misfit(places, expected) or nil
  if must == '!' and wrong_types[places] then
    return redis.error_reply('WRONGTYPE ' .. wrong_types[places])
  end
  is_wrong[key] = wrong_types[places]
end

-- known returns the reply to the first command of a verb on a key of the batch. One of the wrong type is noted, and
-- returns nothing; another error is the reply of the script.
local failure = nil
local function known(key, reply)
  if type(reply) ~= 'table' or not reply.err then
    return reply
  end
  local place, expected = unpack(asked[key], 1, 2)
  wrong_types[place] = misfit(place, expected)
  is_wrong[key], failure = wrong_types[place], failure or not wrong_types[place] and reply
end
local wakes = false -- a dispatcher is called
