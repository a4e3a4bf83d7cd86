-- chunks walks over a list in pieces that unpack can hold. A piece has an even length, so that pairs stay together.
local function chunks(list)
  local size = 1000
  local first = 1 - size
  return function()
    first = first + size
    if first <= #list then
      return first, math.min(first + size - 1, #list)
    end
  end
end
