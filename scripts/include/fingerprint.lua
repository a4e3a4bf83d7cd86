-- Fingerprints group failures: of each this counts the models that fail by it. The last three keys of an item are what
-- is known of the fingerprint by which its model was failing, of that by which it fails now, and of other, which stands
-- for those that are too many.
local errors, past_errors = KEYS[24], KEYS[25]
local most_errors = 1000 --@ most errors
local before, other = 0, 2 -- places of keys

local function leave_group(key, id)
  redis.call('HINCRBY', key, 'ended', 1)
  if tonumber(redis.call('ZINCRBY', errors, -1, id)) > 0 then --@ leave the error
    return
  end
  redis.call('ZREM', errors, id)
  redis.call('ZREMRANGEBYSCORE', past_errors, '-inf', now - day * 1000)
  if redis.call('ZCARD', past_errors) < most_errors then
    redis.call('ZADD', past_errors, now, id)
    redis.call('EXPIRE', past_errors, day)
    redis.call('EXPIRE', key, day)
  else
    redis.call('DEL', key)
  end
end

local function join_group(key, id, uid)
  local last = {uid}
  for earlier in string.gmatch(redis.call('HGET', key, 'uids') or '', '%S+') do
    last[#last + 1] = earlier ~= uid and #last < 3 and earlier or nil
  end
  redis.call('HSET', key, 'uids', table.concat(last, ' '))
  redis.call('HSETNX', key, 'first_at', instant)
  redis.call('HINCRBY', key, 'began', 1)
  redis.call('PERSIST', key)
  redis.call('ZREM', past_errors, id)
  return tonumber(redis.call('ZINCRBY', errors, 1, id)) --@ join the error
end

-- notify_once tells people of a fingerprint by which more models fail than are ignored, once a day.
local function notify_once(key, id, models, text, reason)
  local last = tonumber(redis.call('HGET', key, 'told_ms') or '')
  if not last or now - last >= day * 1000 then
    redis.call('HSET', key, 'told_ms', ARGV[2])
    incidents[#incidents + 1] = {'event', 'new_error', 'at', instant, 'error', id, 'signature', text,
      'models', string.format('%d', models), 'reason', reason}
  end
end

-- write_group counts a failure, and returns the id under which.
local function write_group(item, was, keys)
  local id, ignored, text, reason, error_type = unpack(item.fingerprint, 1, 5)
  local key = KEYS[keys + 1]
  local known = id == was or redis.call('ZSCORE', errors, id)
  if id == 'other' or not known and redis.call('ZCARD', errors) >= most_errors then --@ too many
    id, key, text = 'other', KEYS[keys + other], 'other'
  end
  if was and was ~= id then
    leave_group(KEYS[was == 'other' and keys + other or keys + before], was)
  end
  redis.call('HSET', key, 'signature', text, 'reason', reason, 'error_type', error_type, 'uid', item.uid,
    'last_at', instant)
  redis.call('HINCRBY', key, 'failures', 1)
  if was ~= id then
    local models = join_group(key, id, item.uid)
    if tonumber(ignored) > 0 and models == tonumber(ignored) + 1 then
      notify_once(key, id, models, text, reason)
    end
  end
  return id
end

-- write_fingerprint notes by which fingerprint the model fails from now on. Where it cannot be counted, doctor will.
local function write_fingerprint(item)
  local id, was = item.fingerprint and item.fingerprint[1], redis.call('HGET', KEYS[item.first], 'error')
  local keys, fits = place_of(item, id and 'fingerprint' or 'recovers', 0), not (unfit[24] or unfit[25])
  for place = keys, keys + other do
    fits = fits and not is_wrong(item, redis.pcall('HGET', KEYS[place], 'uids'), place, 'hash')
  end
  if fits and id then
    id = write_group(item, was, keys)
  elseif fits and was then
    leave_group(KEYS[was == 'other' and keys + other or keys + before], was)
  end
  if id then
    write_own(item, id)
  end
end
