-- Items: the values of the one in hand are filled into the table of its kind.
local function are_more()
  return at <= last_at
end

local function read_item()
  local item = kinds[tonumber(ARGV[at])]
  local uid, values, is_list = ARGV[at + 1], item.values, item.is_list
  item.uid, item.fault = uid, item.blocked
  item.first, next_key = next_key, next_key + item.keys
  at = at + 2
  for i = 1, #values do
    if is_list[i] then
      item[values[i]] = take_list()
    else
      item[values[i]] = ARGV[at]
      at = at + 1
    end
  end
  local entry, set, place, from = item.entry, item.set, 6, at
  entry[4] = uid
  for i = from, from + #item.notes - 1 do
    place = place + 2
    entry[place] = ARGV[i]
  end
  from = from + #item.notes
  for i = 0, #item.fields - 1 do
    local value = ARGV[from + i]
    place = place + 2
    set[2 * i + 2] = value
    entry[place] = value
  end
  at = from + #item.fields
  return item
end
