-- Batch: what holds for all of its items, and what of its keys holds another type. A key of another type would end the
-- script between two writes. An item that needs such a key is refused; where a key only helps, what is written to it is
-- left out, and doctor mends it.
local instant, now = ARGV[1], tonumber(ARGV[2])
local day = 86400
local _, unfit = wrong_type(header_types)
if unfit[1] or unfit[2] then
  return redis.error_reply('WRONGTYPE ' .. (unfit[1] or unfit[2]))
end
-- Which of KEYS an item needs, by its words.
local needs = {
  push = {3}, back = {3}, message = {4}, reject = {7}, notice = {9}, second = {9}, circuit = {9, 19},
  fingerprint = {9}, policy = {12}, urgent = {13}, id = {15}, blocker = {19}, fenced = {20},
}

local wakes = false -- a dispatcher is called

-- is_wrong tells by a reply whether a key is of another type, and notes that with the item.
local function is_wrong(item, reply, place, expected)
  local wrong = type(reply) == 'table' and reply.err
  if wrong then
    item.fault = misfit(place, expected) or wrong
  end
  return wrong
end

-- answer is the code of an item, with the key that was of another type. What was left out is told at the end.
local function answer(item, code)
  local fault = item.fault
  if fault and (code == 6 or code == 9) then
    return code .. ' ' .. fault
  elseif fault then
    unfit[fault] = fault
  end
  return code
end
