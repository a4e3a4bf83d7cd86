-- Removes claimed messages that change no model: counts each, and keeps the unusable ones with the reason.
-- KEYS[1] <queue>:claimed:<owner> list   KEYS[2] <queue>:stats hash   KEYS[3] <queue>:rejected list
-- ARGV[1] rejected cap (entries)   ARGV[2..] per message: claimed entry, counter, entry for rejected ("" = none)
-- Returns a code per message: 1 applied, 3 gone (not claimed any more; nothing is counted)
local claimed, stats, rejected = KEYS[1], KEYS[2], KEYS[3]
local codes = {}
for i = 2, #ARGV, 3 do
  local message, counter, reject = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local code = 3
  if redis.call('LREM', claimed, 1, message) == 1 then
    code = 1
    redis.call('HINCRBY', stats, counter, 1)
    if reject ~= '' then
      redis.call('RPUSH', rejected, reject)
      redis.call('LTRIM', rejected, -tonumber(ARGV[1]), -1)
    end
  end
  codes[#codes + 1] = code
end
return codes
