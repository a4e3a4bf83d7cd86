-- Checks: refuses returns the code of a check that refuses the item in hand, or nothing.
local function refuses(check)
  local reply, second = check.run(unpack(check.args, 1, check.n)), check.second
  if second and not reply.err then
    replies = reply -- fingerprints read on
    local differs = (reply[1] or '') ~= ARGV[from + check.want]
    if differs or (reply[2] or '') ~= (second > 0 and ARGV[from + second] or '') then --@ compare
      return check.code
    end
  elseif type(reply) == 'table' then
    note_wrong(check, reply)
    return check.wrong
  elseif check.how == '?' then
    return reply and check.code
  elseif check.how == '<' then
    return tonumber(reply or 0) >= tonumber(ARGV[from + check.want]) and check.code --@ below
  elseif (reply or '') ~= ARGV[from + check.want] then --@ slot
    return check.code
  end
end
