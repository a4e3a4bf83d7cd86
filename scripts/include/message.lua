-- Messages: what was claimed goes with the item that answers it. Commands stand in the command queue, and are its
-- leader's only. What the claimed list holds is its owner's, also commands that an older version has left there. A
-- message may stand there more than once.
local claimed, lane, holder, rejected = KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local rejected_cap, owner = tonumber(ARGV[6]), ARGV[7]
local leads = owner ~= '' and not (unfit[5] or unfit[6]) and redis.call('GET', holder) == owner --@ holder
local results = owner ~= '' and not unfit[4] and redis.call('LRANGE', claimed, 0, -1) or {}
local commands = leads and redis.call('LRANGE', lane, 0, -1) or {}
local done, in_claimed = 0, nil -- how many results are done, from the front; how often each of the others stands there
local function count_each(messages, behind)
  local times = {}
  for i = behind + 1, #messages do
    times[messages[i]] = (times[messages[i]] or 0) + 1
  end
  return times
end
local in_lane = count_each(commands, 0)
local done_results, done_commands, rejects = {}, {}, {}

local function is_claimed(message)
  if not in_claimed and results[done + 1] == message or (in_lane[message] or 0) > 0 then
    return true
  end
  in_claimed = in_claimed or count_each(results, done) -- one before it was refused
  return (in_claimed[message] or 0) > 0
end

local function drop(message)
  if (in_lane[message] or 0) > 0 then
    in_lane[message] = in_lane[message] - 1
    done_commands[#done_commands + 1] = message --@ command is removed
  elseif not in_claimed then
    done = done + 1 --@ front is removed
  else
    in_claimed[message] = in_claimed[message] - 1
    done_results[#done_results + 1] = message --@ claimed is removed
  end
end

local function write_reject(item)
  rejects[#rejects + 1] = value_of(item, 'reject') --@ rejected is kept
end

local function write_messages()
  if done > 0 then
    redis.call('LTRIM', claimed, done, -1)
  end
  for _, result in ipairs(done_results) do
    redis.call('LREM', claimed, 1, result)
  end
  for _, command in ipairs(done_commands) do
    redis.call('LREM', lane, 1, command)
  end
  for first, last in chunks(rejects) do
    redis.call('RPUSH', rejected, unpack(rejects, first, last))
    redis.call('LTRIM', rejected, -rejected_cap, -1)
  end
end
