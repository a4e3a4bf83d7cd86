-- Labels: a model stands in the set of each of its labels.
local function write_labels(item)
  for i = 0, (item.said.labels or 0) - 1 do
    local place = place_of(item, 'labels', i)
    is_wrong(item, redis.pcall('SADD', KEYS[place], item.uid), place, 'set') --@ label
  end
  for i = 0, (item.said.unlabels or 0) - 1 do
    local place = place_of(item, 'unlabels', i)
    is_wrong(item, redis.pcall('SREM', KEYS[place], item.uid), place, 'set') --@ unlabel
  end
end
