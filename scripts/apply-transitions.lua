-- Applies decided transitions in order, each only while its model is as it was. A refused one refuses the later ones of its model.
-- KEYS[1] <queue>:due zset  KEYS[2] <queue>:running zset  KEYS[3] <queue>-input list  KEYS[4] <queue>:claimed:<owner> list
-- KEYS[5] <queue>:journal stream  KEYS[6] <queue>:outbox stream  KEYS[7] <queue>:stats hash  KEYS[8] <queue>:wake list
-- KEYS[9..] per item: <queue>:model:<uid> hash, <queue>:payload:<uid> string, <queue>:history:<uid> list
-- ARGV[1] most entries in input  ARGV[2] journal cap (entries)  ARGV[3] history cap (entries)  ARGV[4..] per item, "" = none:
--   set|remove, uid, rev and attempt_uid expected, claimed entry, entry to push, entry to take back, due ms, running ms, payload,
--   history entry, 1 = wake; five lists behind their lengths: fields+values to set, fields to delete, journal, outbox, counters
-- Returns a code per item: 1 applied, 2 conflict, 3 gone (not claimed), 4 taken (not queued), 5 full (input), 6 broken (type)
for i, kind in ipairs({'zset', 'zset', 'list', 'list', 'stream', 'stream', 'hash', 'list'}) do local is = redis.call('TYPE', KEYS[i]).ok
  if is ~= kind and is ~= 'none' then return redis.error_reply('WRONGTYPE ' .. KEYS[i] .. ' holds a ' .. is) end end
local due, running, input, claimed, journal, outbox, stats, wake = unpack(KEYS, 1, 8)
local codes, refused, at, key = {}, {}, 4, 9
local function take(n) at = at + n return unpack(ARGV, at - n, at - 1) end
local function list() local n = tonumber(take(1)) return n > 0 and {take(n)} or {} end
local function score(set, uid, ms) if ms == '' then redis.call('ZREM', set, uid) else redis.call('ZADD', set, ms, uid) end end
while at <= #ARGV do
  local op, uid, rev, attempt, message, push, back, due_ms, running_ms, payload, past, call = take(12)
  local set, del, event, notice, counters = list(), list(), list(), list(), list()
  local hash, body, history = unpack(KEYS, key, key + 2)
  local is, code = redis.pcall('HMGET', hash, 'rev', 'attempt_uid'), 1
  if is.err then code = 6
  elseif message ~= '' and not redis.call('LPOS', claimed, message) then code = 3
  elseif refused[uid] or (is[1] or '') ~= rev or (is[2] or '') ~= attempt then code = 2
  elseif back ~= '' and not redis.call('LPOS', input, back) then code = 4
  elseif push ~= '' and redis.call('LLEN', input) >= tonumber(ARGV[1]) then code = 5
  else
    if #set > 0 then redis.call('HSET', hash, unpack(set)) end
    if #del > 0 then redis.call('HDEL', hash, unpack(del)) end score(due, uid, due_ms) score(running, uid, running_ms)
    if op == 'remove' then redis.call('DEL', hash, body, history) elseif payload ~= '' then redis.call('SET', body, payload) end
    if push ~= '' then redis.call('RPUSH', input, push) elseif back ~= '' then redis.call('LREM', input, 1, back) end
    if message ~= '' then redis.call('LREM', claimed, 1, message) end
    if #event > 0 then redis.call('XADD', journal, 'MAXLEN', '~', ARGV[2], '*', unpack(event)) end
    if #notice > 0 then redis.call('XADD', outbox, '*', unpack(notice)) end
    if past ~= '' then redis.pcall('LPUSH', history, past) redis.pcall('LTRIM', history, 0, tonumber(ARGV[3]) - 1) end
    for _, name in ipairs(counters) do redis.pcall('HINCRBY', stats, name, 1) end
    if call ~= '' and redis.call('LLEN', wake) == 0 then redis.call('RPUSH', wake, '1') end
  end
  codes[#codes + 1], refused[uid], key = code, refused[uid] or code ~= 1, key + 3
end
return codes
