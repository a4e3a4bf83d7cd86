-- Labels: a model stands in the set of each of its labels.
local write_labels = each_key('labels', 'set', function(key, item)
  return redis.pcall('SADD', key, item.uid) --@ label
end)

local write_unlabels = each_key('unlabels', 'set', function(key, item)
  return redis.pcall('SREM', key, item.uid) --@ unlabel
end)
