-- Forgets the policy of a definition, unless a model was saved with it since somebody looked for those that use it.
--
-- KEYS[1] <queue>:policies hash HDEL, name -> canonical JSON
-- KEYS[2] <queue>:policy_uses hash HDEL HGET, as commit.lua writes it
-- ARGV[1] its name
-- ARGV[2] what stood in policy_uses then, "" = nothing
-- Returns 1: forgotten; 0: a model was saved with it
-- include: check
local policies, policy_uses, name, was = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
if (redis.call('HGET', policy_uses, name) or '') ~= was then
  return 0
end
redis.call('HDEL', policies, name)
redis.call('HDEL', policy_uses, name)
return 1
