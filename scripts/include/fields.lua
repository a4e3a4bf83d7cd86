-- set_fields sets fields of a hash. In ARGV each stands before its value: "" = it goes.
local function set_fields(key, first, last)
  for at = first, last, 2 do
    if ARGV[at + 1] == '' then
      redis.call('HDEL', key, ARGV[at])
    else
      redis.call('HSET', key, ARGV[at], ARGV[at + 1])
    end
  end
end
