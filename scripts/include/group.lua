-- Groups: what the items of a batch add to one key is written at once.
local function write_groups()
  for _, group in ipairs(groups) do
    local list = group.list
    for first_of, last_of in chunks(list) do
      redis.call(group.args[1], group.args[2], unpack(list, first_of, last_of)) --@ group
    end
    for i = #list, 1, -1 do
      list[i] = nil
    end
  end
end
