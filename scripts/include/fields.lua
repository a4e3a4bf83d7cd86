-- set_fields sets fields of a hash. ARGV has each field and then its value: "" deletes the field.
local function set_fields(key, first, last)
  for at = first, last, 2 do
    if ARGV[at + 1] == '' then
      redis.call('HDEL', key, ARGV[at])
    else
      redis.call('HSET', key, ARGV[at], ARGV[at + 1])
    end
  end
end
