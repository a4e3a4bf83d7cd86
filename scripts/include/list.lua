-- Lists that keep their newest entries.
function verbs.keep(command, key, entry, most, seconds)
  local length = redis.pcall(command, key, entry) --@ keep
  if type(length) ~= 'number' then
    return length
  end
  if length > tonumber(most) and command == 'LPUSH' then
    redis.call('LTRIM', key, 0, most - 1) --@ newest in front
  elseif length > tonumber(most) then
    redis.call('LTRIM', key, -most, -1)
  end
  if seconds then
    redis.call('EXPIRE', key, seconds)
  end
end

function verbs.keep_instead(key, entry, most)
  if not redis.pcall('LSET', key, 0, entry).ok then --@ instead
    return verbs.keep('LPUSH', key, entry, most)
  end
end
