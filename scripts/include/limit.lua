-- Limits. A key that gets a place back calls a dispatcher if a model waits, unless a start of the batch takes it.
local places_of, waiting_set = {}, nil -- places that were given back, by blocker; the set of blockers
function verbs.free(key, blocker)
  waiting_set = key
  places_of[blocker] = (places_of[blocker] or 0) + 1 --@ freed
end

function verbs.take(blocker)
  places_of[blocker] = (places_of[blocker] or 0) - 1 --@ taken over
end

finishes[#finishes + 1] = function()
  for blocker, left in pairs(places_of) do
    if left > 0 then
      wakes = redis.call('ZADD', waiting_set, 'XX', 'CH', now, blocker) == 1 or wakes --@ left
    end
  end
end

-- wait adds the model to those that wait for a blocker, which a dispatcher rechecks when the first of them asks for it.
local groups, waits, rechecks = {}, {}, {} -- of commands, see template.lua; by key; by blocker
function verbs.wait(key, score, recheck_at, blocker, gates)
  if not waits[key] then
    waits[key] = {list = {}, written = 0, args = {'ZADD', key}}
    groups[#groups + 1] = waits[key]
  end
  local list = waits[key].list
  list[#list + 1] = score
  list[#list + 1] = subject --@ wait
  if tonumber(recheck_at) < (rechecks[blocker] or math.huge) then
    rechecks[blocker] = tonumber(recheck_at)
    redis.call('ZADD', gates, 'LT', recheck_at, blocker) --@ recheck
  end
end

-- close closes a key until an instant in Unix us; the name of who closes it follows. Reserved slots move by as much. A
-- slash comes before the instant until which the pace alone has closed the key, for who opens it.
function verbs.close(key, till_by)
  local is, till, by = redis.pcall('GET', key), string.match(till_by, '^(%d+)(.*)$')
  if type(is) == 'table' then
    return is
  end
  local free, closed, more = string.match(is or '', '^(%d*) ?(%d*)(.*)$')
  local paced = more == '' and closed ~= '' and '/' .. closed or string.match(more, '^/%d+') or ''
  free, closed, till = tonumber(free) or 0, tonumber(closed) or 0, tonumber(till)
  local open = math.max(closed, 1000 * now)
  if open < till then
    free = math.max(free, open) + till - open
    local lasts = math.ceil((free - 1000 * now) / 1000)
    local slots = string.format('%.0f %.0f', free, till) .. paced .. by
    redis.call('SET', key, slots, 'PX', lasts) --@ close the key
  end
end
