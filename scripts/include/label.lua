-- Labels: a model stands in the set of each of its labels.
local function write_labels(item)
  for i = 0, item.labels - 1 do
    local place = place_of(item, 'labels', i)
    is_wrong(item, redis.pcall('SADD', KEYS[place], item.uid), place, 'set') --@ label
  end
end

local function write_unlabels(item)
  for i = 0, item.unlabels - 1 do
    local place = place_of(item, 'unlabels', i)
    is_wrong(item, redis.pcall('SREM', KEYS[place], item.uid), place, 'set') --@ unlabel
  end
end
