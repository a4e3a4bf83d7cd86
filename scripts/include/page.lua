-- Pages: the members of a set that count up to an instant.
-- split returns which of some members count up to an instant, and when the next one does.
local function split(members, to)
  local found, next = {}, nil
  for i = 1, #members, 2 do
    local score = score_of(members[i + 1])
    if score <= to then
      found[#found + 1] = members[i]
    else
      next = next or score
    end
  end
  return found, next
end

-- spread returns a full page whose first half has members from everywhere in turns with it, in the order of multiples
-- of the golden ratio: any few of these are spread evenly. So each key of a limit has its turn, however many precede.
local function spread(set, page, from, by)
  local all = redis.call('ZCOUNT', set, '-inf', by) - from
  local mixed, seen = {}, {}
  for i = 1, #page do
    local place = from + math.floor(i * 0.6180339887 % 1 * all) --@ spread
    for _, member in ipairs({page[i], 2 * i <= #page and redis.call('ZRANGE', set, place, place)[1] or nil}) do
      mixed[#mixed + 1] = #mixed < #page and not seen[member] and member or nil
      seen[member] = true
    end
  end
  return mixed
end

-- read_page returns the owner's page of a set of which few members were read, when the owner reads again, and how many
-- members there are up to an instant. Dispatchers before the owner read sooner. A page that does not exist yet may fill
-- at any time; members after that instant are read once a second.
local function read_page(set, members, to)
  local by, from = math.min(to, now - pause), 0
  local found, next = split(members or {}, by)
  local count = #split(members or {}, to)
  if count == few or count > limit then -- there may be more
    count = living > 1 and redis.call('ZCOUNT', set, '-inf', to) or 0
    if count > limit then
      from, by = before * limit, to --@ share
    end
    found = redis.call('ZRANGEBYSCORE', set, '-inf', by, 'LIMIT', from, limit)
    found = spreads and (set == due or set == urgent) and #found == limit and spread(set, found, from, by) or found
    next = redis.call('ZRANGEBYSCORE', set, '(' .. by, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
  end
  if from > 0 and #found == 0 then
    next = now
  elseif next and to < now then
    next = math.max(next, now + 1000) --@ later
  end
  return found, next and string.format('%.0f', next + pause) or '', count
end
