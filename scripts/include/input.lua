-- Input: the list of attempts for workers. An entry is pushed, taken back, or takes the place of another.
local input, max_queued = KEYS[3], tonumber(ARGV[3])
local queued = unfit[3] and 0 or redis.call('LLEN', input)
local pushed = {}

-- find_entry finds an entry. The release before ended entries with the version of its contract, ,"v":1.
local function find_entry(entry)
  local position = redis.call('LPOS', input, entry)
  if not position then
    entry = string.sub(entry, 1, -2) .. string.format(',%q%c1%c', 'v', 58, 125)
    position = redis.call('LPOS', input, entry)
  end
  return position, entry
end

local function write_back(item)
  local position, entry = find_entry(value_of(item, 'back'))
  if not item.push then
    queued = queued - redis.call('LREM', input, 1, entry) --@ take back
  elseif position then
    redis.call('LSET', input, position, value_of(item, 'push')) --@ in its place
  end
end

local function write_pushed()
  for first, last in chunks(pushed) do
    redis.call('RPUSH', input, unpack(pushed, first, last))
  end
end
