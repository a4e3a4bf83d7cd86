-- Items: the values of the one in hand are filled into the table of its kind.

-- fill fills the notes and the fields, and steps behind the item.
local function fill(item)
  local entry, set, notes, fields, place = item.entry, item.set, #item.notes, #item.fields, 6
  entry[4] = item.uid
  for i = at, at + notes - 1 do
    place = place + 2
    entry[place] = ARGV[i]
  end
  at = at + notes
  for i = 0, fields - 1 do
    local value = ARGV[at + i]
    place = place + 2
    set[2 * i + 2] = value
    entry[place] = value
  end
  at = at + fields
end

local function read_item(item)
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
  fill(item)
  return item
end
