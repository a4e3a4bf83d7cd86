-- list_of lists the errors of keys of the wrong type.
local function list_of(all)
  local list = {}
  for _, text in pairs(all) do
    list[#list + 1] = text
  end
  return list
end
