-- Forgets limits that have ended, unless somebody has set them anew meanwhile.
--
-- KEYS[1] <queue>:limits hash HDEL HGET, key or template -> JSON
-- ARGV[1..] per limit: its field, and its value as it was read
-- Returns how many were forgotten
local limits = KEYS[1]

local forgotten = 0
for at = 1, #ARGV, 2 do
  if redis.call('HGET', limits, ARGV[at]) == ARGV[at + 1] then
    forgotten = forgotten + redis.call('HDEL', limits, ARGV[at])
  end
end
return forgotten
