-- Fence: an item holds only for the model and the holds on which it was decided. It refuses the later items of its
-- model, which were decided on top of it.
local holds, holds_seen = KEYS[20], ARGV[8]
local refused = {}
local held = false -- somebody has begun or ended a hold since the batch was decided
if uses.fenced and not unfit[20] then
  held = (redis.call('HGET', holds, 'changes') or '') ~= holds_seen --@ hold
end
