-- list_of returns what is said of keys of another type.
local function list_of(misfits)
  local list = {}
  for _, text in pairs(misfits) do
    list[#list + 1] = text
  end
  return list
end
