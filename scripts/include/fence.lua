-- Fence: an item holds only for the model and the holds on which it was decided. It refuses the later items of its
-- model, which were decided on top of it.
local holds, holds_seen = KEYS[20], ARGV[8]
local refused = {}
local held = false -- somebody has begun or ended a hold since the batch was decided
for _, kind in ipairs(kinds) do
  if kind.fenced and not unfit[20] then
    held = (redis.call('HGET', holds, 'changes') or '') ~= holds_seen --@ hold
  end
end

-- check_model reads what check_fence compares, and by what the model is failing.
local function check_model(item)
  local is = redis.pcall('HMGET', KEYS[item.first], 'rev', 'attempt_uid', 'error')
  if is_wrong(item, is, item.first, 'hash') then
    return 6
  end
  item.is_rev, item.is_attempt, item.is_error = is[1] or '', is[2] or '', is[3] or nil
end

local function check_fence(item)
  local differs = item.is_rev ~= item.rev or item.is_attempt ~= (item.attempt or item.no_attempt)
  if refused[item.uid] or differs or held and item.fenced then --@ fence
    return 2
  end
end

-- refuse_later notes a model whose item was refused. A message that is gone and changes no model says nothing of it.
local function refuse_later(item, code)
  if code and item.uid ~= '' and not (item.settle and code == 3) then
    refused[item.uid] = true
  end
end
