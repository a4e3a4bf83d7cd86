-- include: misfit
-- known returns the reply of a command that has read one of KEYS. One of the wrong type is noted, and returns nothing;
-- another error is the reply of the script.
local wrong_types, types, failure = {}, header_types, nil
local function known(place, reply)
  if type(reply) ~= 'table' or not reply.err then
    return reply
  end
  wrong_types[place] = misfit(place, types[place])
  failure = failure or not wrong_types[place] and reply
end
