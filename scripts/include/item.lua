-- Items: refuses returns the code of a check that refuses the item in hand, or nothing.
local function refuses(how, code, reply, want, second)
  if how == '&' then
    replies = reply -- fingerprints read on
    return ((reply[1] or '') ~= want or (reply[2] or '') ~= second) and code --@ compare
  elseif how == '?' then
    return reply and code
  elseif how == '<' then
    return tonumber(reply or 0) >= tonumber(want) and code
  end
  return (reply or '') ~= want and code
end

-- note_code notes what became of the item in hand: the code that refuses it, if there is one, before the key of the
-- wrong type. A message that is gone and changes nothing does not refuse later items of its subject.
local codes, items = {}, 0
local function note_code(code, changes)
  if code and (changes or code ~= 3 and subject ~= '') then
    refused[subject] = true --@ refuse
  elseif fault and not code then
    wrong_types[fault] = fault -- listed after the codes
  end
  items = items + 1
  codes[items] = code and fault and code .. ' ' .. fault or code or 1
end
