-- hear notes how many messages of output the owner has claimed, and how many were left before or adopted: these may be
-- of any age.
local in_hand = tonumber(ARGV[8]) > 0
local function hear(came, left)
  local name = 'poller ' .. owner
  if came + left == 0 and not noted[3] then
    return
  end
  local before, last = noted[1] or '0', left > 0 and '0' or string.match(noted[3] or '', '%d+$')
  local applied = (left > 0 or in_hand) and last --@ applied
  if came > 0 then
    local rest = results - came
    local mark, ahead = string.match(noted[2] or '', '^(%d+) (%d+)$')
    ahead = (tonumber(ahead) or 0) - came
    local claimed_to = rest == 0 and now or mark and ahead <= 0 and mark or before
    if not mark or ahead <= 0 then
      mark, ahead = now, rest
    end
    mark = rest == 0 and '' or mark .. ' ' .. ahead
    local held = (applied or before) .. ' ' .. (left > 0 and last or before)
    redis.call('HSET', heard, 'claimed', claimed_to, 'mark', mark, name, held) --@ holds
  elseif applied then
    redis.call('HSET', heard, name, applied .. ' ' .. last)
  else
    redis.call('HDEL', heard, name)
  end
end
