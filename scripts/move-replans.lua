-- Moves walks over the models on, by which models are planned anew whose stored policy has changed, or ends them. One
-- that has begun anew meanwhile, as its policy was changed again, stays where it is.
--
-- KEYS[1] <queue>:replans hash, policy -> how far the walk is
-- ARGV[1..] per walk: its policy, how far it was, how far it is, "" = it is over
-- Returns a code per walk: 1 applied, 2 conflict (it has begun anew, or somebody else has moved it)
-- include: types
local replans = KEYS[1]

-- Check
local wrong = wrong_type({'hash'})
if wrong then
  return wrong
end

local codes = {}
for at = 1, #ARGV, 3 do
  local policy, was, is = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  local code = 1
  if redis.call('HGET', replans, policy) ~= was then --@ another walk
    code = 2
  elseif is == '' then
    redis.call('HDEL', replans, policy)
  else
    redis.call('HSET', replans, policy, is)
  end
  codes[#codes + 1] = code
end
return codes
