-- Fingerprints of failures. The third reply to the compare of a model is its fingerprint until now.
local incidents = {}

-- notify_once notifies people once a day when more models fail by a fingerprint than are ignored.
local function notify_once(group, text, reason)
  local last = tonumber(redis.call('HGET', group.key, 'told_ms') or '')
  if not last or now - last >= day * 1000 then
    redis.call('HSET', group.key, 'told_ms', ARGV[2])
    incidents[#incidents + 1] = {'event', 'new_error', 'at', instant, 'error', group.id, 'signature', text,
      'models', string.format('%d', group.models), 'reason', reason}
  end
end

-- fail moves the model to the group of a fingerprint, and draws its id. The keys are the group until now, the new one,
-- and "other", which takes the models when there are too many groups.
function verbs.fail(was_key, key, other_key, id, ignored, text, reason, error_type)
  drawn = id
  local group, rest = group_of(id, key), group_of('other', other_key)
  local was = replies[3] and group_of(replies[3], was_key)
  if id == 'other' or group and group ~= was and group.models <= 0 and group_count >= most_errors then --@ too many
    text, group = 'other', rest
  end
  if not group then
    return group_error
  end
  group.last = {'signature', text, 'reason', reason, 'error_type', error_type, 'uid', subject, 'last_at', instant}
  group.failures = group.failures + 1
  if group ~= was then
    leave_group(was)
    join_group(group, subject)
    if tonumber(ignored) > 0 and group.models == tonumber(ignored) + 1 then
      notify_once(group, text, reason)
    end
  end
  drawn = group.id
  return group_error
end

function verbs.recover(was_key)
  leave_group(replies[3] and group_of(replies[3], was_key)) --@ sort
  return group_error
end

finishes[#finishes + 1] = function()
  for _, incident in ipairs(incidents) do
    redis.call('XADD', outbox, '*', unpack(incident, 1, 12))
    if journal_cap > 0 then
      redis.call('XADD', journal, 'MAXLEN', '~', journal_cap, '*', unpack(incident, 1, 12))
    end
  end
end
