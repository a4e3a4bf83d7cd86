-- Fingerprints group failures: of each this counts the models that fail by it. The last three keys of an item are what
-- is known of the fingerprint by which its model was failing, of that by which it fails now, and of other, which stands
-- for those that are too many. What a batch changes of a fingerprint is written once.
local errors, past_errors = KEYS[24], KEYS[25]
local most_errors = 1000 --@ most errors
local groups, met, apart = {}, {}, nil -- by id; in their order; how many fingerprints models fail by

-- group_of returns what the batch knows of a fingerprint, and nothing if its key is of another type: doctor will count.
local function group_of(item, id, place)
  local group = groups[id]
  if not group then
    local uids = redis.pcall('HGET', KEYS[place], 'uids')
    local fits = not (unfit[24] or unfit[25] or is_wrong(item, uids, place, 'hash'))
    local models = fits and tonumber(redis.call('ZSCORE', errors, id) or 0)
    group = {
      id = id, key = KEYS[place], fits = fits, models = models, stood = models, failures = 0, began = 0, ended = 0,
      uids = fits and uids or '',
    }
    apart = apart or fits and redis.call('ZCARD', errors)
    groups[id], met[#met + 1] = group, group
  end
  return group.fits and group
end

local function leave_group(group)
  group.ended = group.ended + 1
  if group.models > 0 then
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

-- notify_once tells people of a fingerprint by which more models fail than are ignored, once a day.
local function notify_once(group, text, reason)
  local last = tonumber(redis.call('HGET', group.key, 'told_ms') or '')
  if not last or now - last >= day * 1000 then
    redis.call('HSET', group.key, 'told_ms', ARGV[2])
    incidents[#incidents + 1] = {'event', 'new_error', 'at', instant, 'error', group.id, 'signature', text,
      'models', string.format('%d', group.models), 'reason', reason}
  end
end

-- count_failure counts a failure of a model, which failed by was before, and returns the id under which.
local function count_failure(item, was, group, rest)
  local id, ignored, text, reason, error_type = unpack(item.fingerprint, 1, 5)
  local known = group and (group == was or group.models > 0)
  if id == 'other' or group and not known and apart >= most_errors then --@ too many
    text, group = 'other', rest
  end
  if not group then
    return id
  end
  group.last = {'signature', text, 'reason', reason, 'error_type', error_type, 'uid', item.uid, 'last_at', instant}
  group.failures = group.failures + 1
  if group ~= was then
    if was and item.is_error then
      leave_group(was)
    end
    join_group(group, item.uid)
    if tonumber(ignored) > 0 and group.models == tonumber(ignored) + 1 then
      notify_once(group, text, reason)
    end
  end
  return group.id
end

-- write_fingerprint notes by which fingerprint the model fails from now on.
local function write_fingerprint(item)
  local keys, id = place_of(item, item.fingerprint and 'fingerprint' or 'recovers', 0), ''
  if item.fingerprint then
    id = item.fingerprint[1]
  end
  local was, group = group_of(item, item.is_error or '', keys), group_of(item, id, keys + 1)
  local rest = group_of(item, 'other', keys + 2)
  if item.fingerprint then
    write_own(item, count_failure(item, was, group, rest)) --@ count the error
  elseif was and item.is_error then
    leave_group(was)
  end
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

local function write_group(group)
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
    redis.call('ZADD', errors, group.models, group.id) --@ models of an error
  elseif group.models == 0 and group.ended > 0 then
    forget_group(group)
  end
end

local function write_groups()
  for _, group in ipairs(met) do
    if group.fits then
      write_group(group)
    end
  end
end
