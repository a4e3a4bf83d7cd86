-- Commands: their ids are known for a day. A day's worth at once would keep Redis busy for long.
function verbs.forget(key)
  local old = redis.call('ZCOUNT', key, '-inf', now - day * 1000)
  if old > 0 then
    redis.call('ZREMRANGEBYRANK', key, 0, math.min(old, 1000) - 1) --@ forget
  end
end
