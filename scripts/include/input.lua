-- Input: the list of attempts for workers. An entry is pushed, taken back, or takes the place of another.
local input, max_queued, queued, pushed = nil, 0, 0, {}
function verbs.input(key, most)
  input, max_queued = key, tonumber(most)
  queued = is_wrong[key] and 0 or redis.call('LLEN', key)
end

-- find_entry finds an entry. The release before ended entries with the version of its contract, ,"v":1.
local function find_entry(entry)
  local position = redis.call('LPOS', input, entry)
  if not position then
    entry = string.sub(entry, 1, -2) .. string.format(',%q%c1%c', 'v', 58, 125)
    position = redis.call('LPOS', input, entry)
  end
  return position, entry
end

function verbs.full()
  return queued >= max_queued --@ full
end

function verbs.taken(entry)
  return not find_entry(entry) --@ taken
end

function verbs.push(entry)
  pushed[#pushed + 1] = entry --@ push
  queued = queued + 1
end

function verbs.take_back(entry)
  local _, found = find_entry(entry)
  queued = queued - redis.call('LREM', input, 1, found) --@ take back
end

function verbs.replace(entry, by)
  local position = find_entry(entry)
  if position then
    redis.call('LSET', input, position, by) --@ in its place
  end
end

finishes[#finishes + 1] = function()
  for first_of, last_of in chunks(pushed) do
    redis.call('RPUSH', input, unpack(pushed, first_of, last_of))
  end
end
