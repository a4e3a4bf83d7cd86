-- Batch: its instant, and which of its keys are of another type.
local instant, now = ARGV[1], tonumber(ARGV[2])
local day = 86400
local types, stops = {}, {}
for must, kind in string.gmatch(ARGV[3], '(!?)(%a+)') do
  table.insert(types, kind)
  stops[#types] = must == '!'
end
local _, unfit = wrong_type(types)
local is_unfit = {} -- by key
for place in ipairs(types) do
  if stops[place] and unfit[place] then
    return redis.error_reply('WRONGTYPE ' .. unfit[place])
  end
  is_unfit[KEYS[place]] = unfit[place]
end
local wakes = false -- a dispatcher is called
