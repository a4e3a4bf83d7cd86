-- Failure groups: count the models that fail by the same fingerprint. A batch writes the changes of a group once.
local errors, past_errors = nil, nil
local most_errors = 1000 --@ most errors
local met_groups, met, group_count = {}, {}, nil -- by id; in their order; how many there are in Redis and here
local group_error = nil -- of a key of the wrong type
function verbs.errors(key, past)
  errors, past_errors = key, past
end

-- group_of returns the group of a fingerprint, and nothing if its key is of the wrong type: doctor counts again.
local function group_of(id, key)
  if met_groups[id] == nil then
    local uids = redis.pcall('HGET', key, 'uids')
    group_error = type(uids) == 'table' and uids or group_error
    met_groups[id] = type(uids) ~= 'table' and not is_wrong[errors] and not is_wrong[past_errors] and {
      id = id, key = key, failures = 0, began = 0, ended = 0, uids = uids or '',
    }
    local group = met_groups[id]
    if group then
      group.models = tonumber(redis.call('ZSCORE', errors, id) or 0)
      group.models_before = group.models
      group_count = group_count or redis.call('ZCARD', errors)
      met[#met + 1] = group
    end
  end
  return met_groups[id]
end

-- leave_group removes a model from its failure group, if it has one.
local function leave_group(group)
  if group then
    group.ended = group.ended + 1
  end
  if group and group.models > 0 then
    group.models = group.models - 1 --@ leave the error
    group_count = group.models == 0 and group_count - 1 or group_count
  end
end

local function join_group(group, uid)
  if group.models_before == 0 and group.began == 0 and not redis.call('ZSCORE', past_errors, group.id) then
    redis.call('DEL', group.key) -- what the cap has forgotten begins anew
    group.uids = ''
  end
  local last = uid
  for earlier in string.gmatch(group.uids, '%S+') do
    local _, spaces = string.gsub(last, ' ', '')
    last = earlier ~= uid and spaces < 2 and last .. ' ' .. earlier or last
  end
  group_count = group.models == 0 and group_count + 1 or group_count
  group.uids, group.began, group.models = last, group.began + 1, group.models + 1 --@ join the error
end

-- forget_group keeps the group of a fingerprint without failing models for a day. Beyond the cap the oldest goes; its
-- hash expires by itself.
local function forget_group(group)
  redis.call('ZREM', errors, group.id)
  redis.call('ZREMRANGEBYSCORE', past_errors, '-inf', now - day * 1000)
  redis.call('ZADD', past_errors, now, group.id)
  redis.call('ZREMRANGEBYRANK', past_errors, 0, -most_errors - 1)
  redis.call('EXPIRE', past_errors, day)
  redis.call('EXPIRE', group.key, day)
end

finishes[#finishes + 1] = function()
  for _, group in ipairs(met) do
    local key = group.key
    if group.failures > 0 then
      redis.call('HSET', key, unpack(group.last, 1, 10))
      redis.call('HINCRBY', key, 'failures', group.failures)
    end
    if group.ended > 0 then
      redis.call('HINCRBY', key, 'ended', group.ended)
    end
    if group.began > 0 then
      redis.call('HSET', key, 'uids', group.uids)
      redis.call('HSETNX', key, 'first_at', instant)
      redis.call('HINCRBY', key, 'began', group.began)
      redis.call('PERSIST', key)
      redis.call('ZREM', past_errors, group.id)
    end
    if group.models > 0 and group.models ~= group.models_before then
      redis.call('ZINCRBY', errors, group.models - group.models_before, group.id) --@ models of an error
    elseif group.models == 0 and group.ended > 0 then
      forget_group(group)
    end
  end
end
