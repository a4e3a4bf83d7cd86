-- Messages: an item removes the claimed message that it answers. Only the leader has commands. A claimed list may hold
-- a message more than once.
local claimed, commands, heard, poller = nil, nil, nil, nil
local results, in_commands = {}, {}
local done, in_claimed = 0, nil -- how many results are done, from the front; how often each of the others is there
local done_results, done_commands = {}, {}
local function count_each(messages, behind)
  local times = {}
  for i = behind + 1, #messages do
    times[messages[i]] = (times[messages[i]] or 0) + 1
  end
  return times
end

function verbs.claim(claimed_key, heard_key, owner)
  claimed, heard, poller = claimed_key, heard_key, owner
  results = known(claimed, redis.pcall('LRANGE', claimed, 0, -1)) or {}
end

function verbs.commands(commands_key, leader, owner)
  commands = commands_key
  local leads = known(leader, redis.pcall('GET', leader)) == owner --@ holder
  in_commands = count_each(leads and known(commands, redis.pcall('LRANGE', commands, 0, -1)) or {}, 0)
end

function verbs.gone(message)
  if not in_claimed and results[done + 1] == message or (in_commands[message] or 0) > 0 then
    return false
  end
  in_claimed = in_claimed or count_each(results, done) -- one before it was refused
  return (in_claimed[message] or 0) == 0 --@ gone
end

function verbs.settle(message)
  if (in_commands[message] or 0) > 0 then
    in_commands[message] = in_commands[message] - 1
    done_commands[#done_commands + 1] = message --@ command is removed
  elseif not in_claimed then
    done = done + 1 --@ front is removed
  else
    in_claimed[message] = in_claimed[message] - 1
    done_results[#done_results + 1] = message --@ claimed is removed
  end
end

finishes[#finishes + 1] = function()
  if done > 0 then
    redis.call('LTRIM', claimed, done, -1)
  end
  for _, result in ipairs(done_results) do
    redis.call('LREM', claimed, 1, result)
  end
  if #results > 0 and done + #done_results == #results then
    known(heard, redis.pcall('HDEL', heard, 'poller ' .. poller)) --@ holds none
  end
  for _, command in ipairs(done_commands) do
    redis.call('LREM', commands, 1, command)
  end
end
