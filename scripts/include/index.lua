-- Indexes: sorted sets of uids. They are written once for the batch. In due, urgent and running a model stands only as
-- long as each of its transitions says so, in the others until one says otherwise.
local due, urgent, running = KEYS[1], KEYS[13], KEYS[2]
local indexes = {
  {word = 'due', key = due, always = true}, {word = 'running', key = running, always = true},
  {word = 'urgent', key = urgent, unfit = unfit[13]}, {word = 'failing', key = KEYS[16], unfit = unfit[16]},
  {word = 'disabled', key = KEYS[17], unfit = unfit[17]}, {word = 'parked', key = KEYS[18], unfit = unfit[18]},
  {word = 'stale_at', key = KEYS[21], unfit = unfit[21]}, {word = 'late', key = KEYS[22], unfit = unfit[22]},
  {word = 'stale', key = KEYS[23], unfit = unfit[23]},
}
-- As a rule the set urgent is empty, and nobody leaves it.
local hurries = uses.urgent or not unfit[13] and redis.call('EXISTS', urgent) == 1
for _, index in ipairs(indexes) do
  index.add, index.remove = {}, {}
  for _, kind in ipairs(kinds) do
    local changes = index.always or index.word == 'urgent' and hurries or kind[index.word]
    if not kind.settle and not index.unfit and changes then
      table.insert(kind.indexes, index)
    end
  end
end
local seen = {}

local function write_indexes()
  for _, index in ipairs(indexes) do
    local key, add, remove = index.key, index.add, index.remove
    for first, last in chunks(add) do
      redis.call('ZADD', key, unpack(add, first, last)) --@ join an index
    end
    for first, last in chunks(remove) do
      redis.call('ZREM', key, unpack(remove, first, last)) --@ leave an index
    end
    index.add, index.remove = {}, {}
  end
  seen = {}
end

-- check_remove refuses to end an orphan of which nothing is left: another process has removed the model since.
local function check_remove(item)
  local uid, first = item.uid, item.first
  if value_of(item, 'rev') ~= '' or item.unlabels then
    return
  end
  if redis.call('EXISTS', KEYS[first], KEYS[first + 1], KEYS[first + 2]) > 0 then
    return
  end
  if seen[uid] then
    write_indexes()
  end
  for _, index in ipairs(item.indexes) do
    if redis.call('ZSCORE', index.key, uid) then
      return
    end
  end
  for _, word in ipairs({'unblocks', 'frees'}) do
    for i = 0, (item.brings[word] or 0) - 1 do
      if redis.pcall('ZSCORE', KEYS[place_of(item, word, i)], uid) then -- or it is of another type
        return
      end
    end
  end
  return 2
end

-- write_index has a model stand in an index at a score, or leave it.
local function write_index(item)
  local uid, from, changed = item.uid, item.from, item.indexes
  if seen[uid] then --@ more than one
    write_indexes() -- the last score counts
  end
  seen[uid] = true
  for i = 1, #changed do
    local index = changed[i]
    local word = index.word
    local place = item.value_at[word]
    local score = place and ARGV[from + place] or '' --@ index
    if score == '' then
      index.remove[#index.remove + 1] = uid --@ leave a set
    else
      local add = index.add
      add[#add + 1] = score
      add[#add + 1] = uid
    end
  end
end
