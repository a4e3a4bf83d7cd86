-- Input: the list of attempts for workers. An entry is pushed, taken back, or takes the place of another.
local input, max_queued, queued, pushed = nil, 0, 0, {}
function verbs.input(key, most)
  input, max_queued = key, tonumber(most)
  queued = known(key, redis.pcall('LLEN', key)) or 0
end

function verbs.full()
  return queued >= max_queued --@ full
end

function verbs.taken(entry)
  return not redis.call('LPOS', input, entry) --@ taken
end

function verbs.push(entry)
  pushed[#pushed + 1] = entry --@ push
  queued = queued + 1
end

function verbs.take_back(entry)
  queued = queued - redis.call('LREM', input, 1, entry) --@ take back
end

function verbs.replace(entry, by)
  local position = redis.call('LPOS', input, entry)
  if position then
    redis.call('LSET', input, position, by) --@ in its place
  end
end

finishes[#finishes + 1] = function()
  for first_of, last_of in chunks(pushed) do
    redis.call('RPUSH', input, unpack(pushed, first_of, last_of))
  end
end
