-- Journal: an entry tells of each transition. Without a key that fits there is none.
local journal, journal_cap = KEYS[8], unfit[8] and 0 or tonumber(ARGV[4])
local is_told = false

local function write_entry(entry)
  redis.call('XADD', journal, '*', unpack(entry, 1, math.min(#entry, 1000))) --@ journal
  is_told = true
end
