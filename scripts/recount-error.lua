-- Writes down how many models are failing by a signature, unless one has begun or ceased to since they were counted.
--
-- KEYS[1] <queue>:errors zset ZADD ZREM ZSCORE, id of a signature -> how many models are failing by it
-- KEYS[2] <queue>:past_errors zset EXPIRE ZADD ZREM, id of one by which no model is failing any more -> since when in
--   Unix ms
-- KEYS[3] <queue>:error:<name> hash EXPIRE HMGET PERSIST, what is known of the signature
-- ARGV[1] id of the signature
-- ARGV[2] how many models stood in errors before they were counted, 0 = none
-- ARGV[3] what stood in the field began then, "" = nothing
-- ARGV[4] what stood in the field ended then, "" = nothing
-- ARGV[5] how many models are failing by it
-- ARGV[6] now in Unix ms
-- Returns 1: written; 0: a model has begun or ceased to fail by it
-- include: check
local errors, past_errors, known = KEYS[1], KEYS[2], KEYS[3]
local id, counted, began, ended, models, now = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]

-- Check
local is = redis.call('HMGET', known, 'began', 'ended')
local stands = tonumber(redis.call('ZSCORE', errors, id) or '') or 0
if stands ~= tonumber(counted) or (is[1] or '') ~= began or (is[2] or '') ~= ended then
  return 0
end

-- Write
if tonumber(models) > 0 then
  redis.call('ZADD', errors, models, id)
  redis.call('ZREM', past_errors, id)
  redis.call('PERSIST', known)
else
  redis.call('ZREM', errors, id)
  redis.call('ZADD', past_errors, now, id)
  redis.call('EXPIRE', past_errors, 86400)
  redis.call('EXPIRE', known, 86400)
end
return 1
