-- Pushes messages of a worker pool. One that ends an attempt removes the entry of it from the owner's taken list in the
-- same step. It is not pushed when the entry does not stand there: it was pushed before, or the entry was requeued and
-- others answer it.
--
-- KEYS[1] <queue>-output list RPUSH
-- KEYS[2] <queue>:taken:<owner> list LREM
-- ARGV[1..] per message: 1 = it ends an attempt, entry that it ends, message ("" = there is nothing to tell)
-- Returns a code per message: 1 applied, 3 gone (not in the taken list; not pushed)
-- include: check
local output, taken = KEYS[1], KEYS[2]

local codes = {}
for i = 1, #ARGV, 3 do
  local ends, entry, message = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local code = 3
  if ends == '' or redis.call('LREM', taken, 1, entry) == 1 then --@ end
    code = 1
    if message ~= '' then --@ push
      redis.call('RPUSH', output, message)
    end
  end
  codes[#codes + 1] = code
end
return codes
