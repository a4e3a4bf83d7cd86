-- list_of returns what is said of keys of another type.
local function list_of(wrong_types)
  local list = {}
  for _, text in pairs(wrong_types) do
    list[#list + 1] = text
  end
  return list
end
