-- Fingerprints of failures. The last three keys of an item are the groups of the fingerprint by which its model was
-- failing, of that by which it fails now, and of other, which stands for those that are too many. A recovery has only
-- the first.

-- notify_once tells people of a fingerprint by which more models fail than are ignored, once a day.
local function notify_once(group, text, reason)
  local last = tonumber(redis.call('HGET', group.key, 'told_ms') or '')
  if not last or now - last >= day * 1000 then
    redis.call('HSET', group.key, 'told_ms', ARGV[2])
    incidents[#incidents + 1] = {'event', 'new_error', 'at', instant, 'error', group.id, 'signature', text,
      'models', string.format('%d', group.models), 'reason', reason}
  end
end

-- sort_failure counts by which fingerprint the model fails from now on, and returns that. It failed by was_id, or none.
local function sort_failure(item, was_id)
  local id, ignored, text, reason, error_type = unpack(item.fingerprint, 1, 5)
  local keys = place_of(item, 'fingerprint', 0)
  local group, rest = group_of(item, id, keys + 1), group_of(item, 'other', keys + 2)
  local was = was_id and group_of(item, was_id, keys)
  if id == 'other' or group and group ~= was and group.models <= 0 and apart >= most_errors then --@ too many
    text, group = 'other', rest
  end
  if not group then
    return id
  end
  group.last = {'signature', text, 'reason', reason, 'error_type', error_type, 'uid', item.uid, 'last_at', instant}
  group.failures = group.failures + 1
  if group ~= was then
    leave_group(was)
    join_group(group, item.uid)
    if tonumber(ignored) > 0 and group.models == tonumber(ignored) + 1 then
      notify_once(group, text, reason)
    end
  end
  return group.id
end

local function sort_recovery(item, was)
  leave_group(was and group_of(item, was, place_of(item, 'recovers', 0)))
end
