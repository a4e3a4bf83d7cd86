-- list_of lists the errors of keys of the wrong type.
local function list_of(wrong_types)
  local list = {}
  for _, text in pairs(wrong_types) do
    list[#list + 1] = text
  end
  return list
end
