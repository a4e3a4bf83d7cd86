-- include: types
local wrong = wrong_type(header_types)
if wrong then
  return wrong
end
