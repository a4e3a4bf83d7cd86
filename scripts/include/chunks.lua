-- chunks walks over a list, after so many entries, in pieces that unpack can hold. A piece has an even length, so that
-- pairs stay together.
local function chunks(list, behind)
  local size = 1000
  local first = 1 - size + (behind or 0)
  return function()
    first = first + size
    if first <= #list then
      return first, math.min(first + size - 1, #list)
    end
  end
end
