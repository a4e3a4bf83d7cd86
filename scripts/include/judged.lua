-- just_before returns the millisecond before a noted one. One that lies ahead is from before the clock was set back.
local function just_before(noted)
  local at = tonumber(noted or '') or 0
  return at <= now and at - 1 or 0
end

-- judged_to returns up to when deadlines are judged: all messages pushed until then are applied. It notes the owner.
local function judged_to()
  local noted, at = {}, now
  for i = 1, #notes, 2 do
    noted[notes[i]] = notes[i + 1]
    local poller = string.match(notes[i], '^poller (.*)')
    if poller and not known(14, redis.pcall('ZSCORE', pollers, poller)) and not failure then
      redis.call('HDEL', heard, notes[i])
    elseif poller then
      at = math.min(at, just_before(string.match(notes[i + 1], '^%d+'))) --@ claimed
    end
  end
  if pushed > 0 then
    at = math.min(at, just_before(noted.claimed)) --@ pushed
  end
  local beat, gap = tonumber(noted.beat), noted.gap
  if owner ~= '' then
    if grace > 0 and beat and now - beat > lease / 2 then
      gap = string.format('%.0f %.0f', beat, now)
      redis.call('HSET', heard, 'gap', gap) --@ gap
    end
    redis.call('HSET', heard, 'beat', now, 'window', ARGV[7] .. string.format(' %.0f', now + lease))
  end
  local from, to = string.match(gap or '', '^(%d+) (%d+)$')
  if from and now >= tonumber(to) and now < to + grace then --@ grace ends
    at = math.min(at, from - grace) --@ grace
  end
  return at
end
