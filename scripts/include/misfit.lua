-- misfit says of one of KEYS that it holds another type than expected. A user who may not ask is believed to have the
-- right one.
local function misfit(place, expected)
  local found = redis.pcall('TYPE', KEYS[place]).ok
  if found and found ~= 'none' and found ~= expected then
    return KEYS[place] .. ' holds a ' .. found .. ', expected a ' .. expected
  end
end
