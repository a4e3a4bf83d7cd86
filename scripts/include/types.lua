-- include: misfit
-- wrong_type returns an error about the first of KEYS that holds another type than expected, or nothing; and what is to
-- be said of all that do, by their places.
local function wrong_type(expected)
  local first, misfits = nil, {}
  for place, kind in ipairs(expected) do
    misfits[place] = misfit(place, kind)
    if misfits[place] and not first then
      first = redis.error_reply('WRONGTYPE ' .. misfits[place])
    end
  end
  return first, misfits
end
