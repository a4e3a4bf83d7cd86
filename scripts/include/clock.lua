-- clock returns an instant in Unix ms: the argument, or the clock of Redis when the argument is empty.
local function clock(argument)
  if argument ~= '' then
    return argument
  end
  local time = redis.call('TIME')
  return string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
end
