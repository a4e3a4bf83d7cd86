-- Failure groups: the models that fail by the same fingerprint are counted. What a batch changes of a group is written
-- once.
local errors, past_errors = nil, nil
local most_errors = 1000 --@ most errors
local met_groups, met, apart = {}, {}, nil -- by id; in their order; how many there are in Redis and here
local group_error = nil -- of a key of another type
function verbs.errors(key, past)
  errors, past_errors = key, past
end

-- group_of returns what the batch knows of a fingerprint, and nothing if its key is of another type: doctor will count.
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
      group.stood = group.models
      apart = apart or redis.call('ZCARD', errors)
      met[#met + 1] = group
    end
  end
  return met_groups[id]
end

-- leave_group counts that a model fails by a group no more, if it did.
local function leave_group(group)
  if group then
    group.ended = group.ended + 1
  end
  if group and group.models > 0 then
    group.models = group.models - 1 --@ leave the error
    apart = group.models == 0 and apart - 1 or apart
  end
end

local function join_group(group, uid)
  local last = uid
  for earlier in string.gmatch(group.uids, '%S+') do
    local _, spaces = string.gsub(last, ' ', '')
    last = earlier ~= uid and spaces < 2 and last .. ' ' .. earlier or last
  end
  apart = group.models == 0 and apart + 1 or apart
  group.uids, group.began, group.models = last, group.began + 1, group.models + 1 --@ join the error
end

-- forget_group keeps for a day what is known of a fingerprint by which no model fails any more, if there is room.
local function forget_group(group)
  redis.call('ZREM', errors, group.id)
  redis.call('ZREMRANGEBYSCORE', past_errors, '-inf', now - day * 1000)
  if redis.call('ZCARD', past_errors) < most_errors then
    redis.call('ZADD', past_errors, now, group.id)
    redis.call('EXPIRE', past_errors, day)
    redis.call('EXPIRE', group.key, day)
  else
    redis.call('DEL', group.key)
  end
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
    if group.models > 0 and group.models ~= group.stood then
      redis.call('ZINCRBY', errors, group.models - group.stood, group.id) --@ models of an error
    elseif group.models == 0 and group.ended > 0 then
      forget_group(group)
    end
  end
end
