-- Removes claimed messages that change no model: counts each, and keeps the unusable ones with the reason.
-- KEYS[1] <queue>:claimed:<owner> list   KEYS[2] <queue>:stats hash   KEYS[3] <queue>:rejected list
-- ARGV[1] rejected cap (entries)   ARGV[2..] per message: claimed entry, counter, entry for rejected ("" = none)
-- Returns a code per message: 1 applied, 3 gone (not claimed any more; nothing is counted)
local claimed, stats, rejected = KEYS[1], KEYS[2], KEYS[3]
local codes = {}
for i = 2, #ARGV, 3 do
  local message, counter, reject = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local code = 3
  if redis.call('LPOS', claimed, message) then
    code = 1
    if reject ~= '' then -- first, so that a rejected key of another type loses no message
      redis.call('RPUSH', rejected, reject)
      redis.call('LTRIM', rejected, -tonumber(ARGV[1]), -1)
    end
    redis.call('LREM', claimed, 1, message)
    redis.pcall('HINCRBY', stats, counter, 1)
  end
  codes[#codes + 1] = code
end
return codes
