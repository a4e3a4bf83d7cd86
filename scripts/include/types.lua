-- wrong_type returns an error about the first of KEYS that holds another type than expected, or nothing.
local function wrong_type(expected)
  for i, kind in ipairs(expected) do
    local found = redis.call('TYPE', KEYS[i]).ok
    if found ~= kind and found ~= 'none' then
      return redis.error_reply('WRONGTYPE ' .. KEYS[i] .. ' holds a ' .. found .. ', expected a ' .. kind)
    end
  end
end
