-- Policies of definitions: one stands under a name made of its content. Each save of a model that uses it writes it,
-- and when that was. Doctor removes it when no model uses it and none was saved with it for a day. "?" keeps releases
-- that count the models of a policy from removing it.
local policies, policy_uses = KEYS[12], KEYS[14]

local function write_policy(item)
  local name, text = item.policy[1], item.policy[2]
  redis.call('HSETNX', policies, name, text) --@ text
  redis.pcall('HSET', policy_uses, name, '? ' .. ARGV[2])
end
