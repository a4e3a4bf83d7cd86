-- Subjects: their tickets, fields of other keys that they depend on, leftovers of removed ones, and the call to a
-- dispatcher.
local tickets, wake, noted = 0, nil, nil
function verbs.tickets(key)
  local start = known(key, redis.pcall('HGET', key, 'start'))
  tickets = not is_wrong[key] and (tonumber(start or '') or 0)
end

-- ticket draws the number of a start in the order of all that there ever were. Without a count it is 0.
function verbs.ticket()
  tickets = tickets and tickets + 1 --@ ticket
  drawn = string.format('%d', tickets or 0)
end

-- moved reports whether the holds have changed since the batch was decided.
function verbs.holds(key, field)
  noted = known(key, redis.pcall('HGET', key, field)) or ''
end

function verbs.moved(value)
  return noted ~= value --@ hold
end

-- refused reports whether an earlier item about another subject was refused, or about this one if none is given.
function verbs.refused(other)
  return refused[other or subject]
end

-- wrong_type answers with the error of a key that is no sorted set, once for all items that have it.
local fitting = {}
function verbs.wrong_type(key)
  local length = fitting[key] or redis.pcall('ZCARD', key)
  fitting[key] = type(length) == 'number' and length or nil
  return type(length) == 'table' and length
end

-- nothing reports whether no key has the subject for a member, or is of the wrong type.
function verbs.nothing(...)
  for _, key in ipairs({...}) do
    if redis.pcall('ZSCORE', key, subject) then
      return false
    end
  end
  return true
end

-- leave removes a member from a set of the batch that was not empty before.
function verbs.leave(key, member)
  return not absent[key] and redis.call('ZREM', key, member) --@ leave
end

function verbs.wake(key)
  wake = key
end

function verbs.call()
  wakes = true --@ call
end

local function call_dispatcher()
  if wakes and wake and not is_wrong[wake] and redis.call('LLEN', wake) == 0 then --@ wake
    redis.call('RPUSH', wake, '1')
  end
end

-- forget removes members that were added more than a day ago, but not many at once.
function verbs.forget(key)
  local old = redis.call('ZCOUNT', key, '-inf', now - day * 1000)
  if old > 0 then
    redis.call('ZREMRANGEBYRANK', key, 0, math.min(old, 1000) - 1) --@ forget
  end
end
