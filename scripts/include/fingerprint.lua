-- Fingerprints of failures. The last three keys of an item are the groups of the fingerprint by which its model was
-- failing, of that by which it fails now, and of other, which stands for those that are too many.

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
