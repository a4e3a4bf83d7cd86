-- Writes down how many models use an inline policy, or forgets it when none does, unless a model has begun or ceased to
-- use it since they were counted.
--
-- KEYS[1] <queue>:policies hash HDEL, name -> canonical JSON
-- KEYS[2] <queue>:policy_uses hash HDEL HGET HSET, as commit.lua writes it
-- ARGV[1] inline policy
-- ARGV[2] what stood in policy_uses before the models were counted, "" = nothing
-- ARGV[3] what is to stand there, "" = no model uses the policy
-- Returns 1: written; 0: a model has begun or ceased to use the policy
-- include: check
local policies, policy_uses = KEYS[1], KEYS[2]
local policy, was, is = ARGV[1], ARGV[2], ARGV[3]

-- Check
if (redis.call('HGET', policy_uses, policy) or '') ~= was then
  return 0
end

-- Write
if is ~= '' then
  redis.call('HSET', policy_uses, policy, is)
else
  redis.call('HDEL', policies, policy)
  redis.call('HDEL', policy_uses, policy)
end
return 1
