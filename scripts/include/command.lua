-- Commands: one that was handled is known by its id for a day, and its sender told if he asked for it.
local command_ids = KEYS[15]
local noted, handled = {}, {}

local function is_known(item)
  local id = value_of(item, 'id')
  local last = not unfit[15] and redis.call('ZSCORE', command_ids, id)
  return handled[id] or last and tonumber(last) > now - day * 1000
end

local function write_id(item)
  local id = value_of(item, 'id')
  noted[#noted + 1] = ARGV[2]
  noted[#noted + 1] = id
  handled[id] = true
end

local function write_reply(item)
  local place = item.first + 3
  local length = redis.pcall('RPUSH', KEYS[place], value_of(item, 'reply')) --@ reply
  if not is_wrong(item, length, place, 'list') then
    redis.call('LTRIM', KEYS[place], -1000, -1)
    redis.call('EXPIRE', KEYS[place], day)
  end
end

local function write_commands()
  for first, last in chunks(noted) do
    redis.call('ZADD', command_ids, unpack(noted, first, last))
  end
  if #noted > 0 then
    local old = redis.call('ZCOUNT', command_ids, '-inf', now - day * 1000)
    if old > 0 then -- a day's worth at once would keep Redis busy for long
      redis.call('ZREMRANGEBYRANK', command_ids, 0, math.min(old, 1000) - 1) --@ forget
    end
  end
end
