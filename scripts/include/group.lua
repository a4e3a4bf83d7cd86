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
  seen = {}
end

-- find_idle finds groups that take members out of a set which is not there, and to which the batch adds none.
local function find_idle()
  local adds = {}
  for _, group in ipairs(groups) do
    adds[group.args[2]] = adds[group.args[2]] or group.args[1] ~= 'ZREM'
  end
  for _, group in ipairs(groups) do
    group.idle = not adds[group.args[2]] and redis.pcall('TYPE', group.args[2]).ok == 'none'
  end
end
