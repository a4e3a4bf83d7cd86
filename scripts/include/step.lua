-- Steps. A line is a word, its numbers, and mostly a command or verb with its arguments: how many words these are and
-- the places of those to fill in, as pairs of characters ("00" is 0, of 64 each), and the words. "$2" is filled with a
-- value of the item, "@3" with a key of the batch, "%1" with a key of the item, "#" with the last drawn text, "+" with
-- how many items have applied it. If the batch has named a key to another verb, a verb that uses the key has it after
-- its arguments too.
-- Of the batch:
--   first: runs before all items
--   group: is run with what items collect for it; final: runs behind all items, if any that names it is applied
-- Of a template, which the line "item" ends:
--   again: an earlier item is about the subject of this one
--   check "2 6 = 3 0": refuses with 2, or 6 if a key is of the wrong type, unless the first replies are the values 3
--     and "" (0); with "<" unless the reply is below the value; with "?" if the reply is true
--   do: the item needs it; help: it is left out if a key is of the wrong type
--   add "1 2 3": the values 2 and 3 are collected for group 1; try: likewise, where that only helps
--   last "1": final 1 is run
--   item "5 2 1 hash list": an item has 5 values and 2 keys of these types, and changes its subject (1)
local ARGV, KEYS, type, unpack = ARGV, KEYS, type, unpack -- a local is read faster, and these are read most
local byte, gmatch, match, sub, tonumber = string.byte, string.gmatch, string.match, string.sub, tonumber
local at, next_key, end_at = 5, places + 1, #ARGV
local from, first, subject = 0, 1, '' -- of the item in hand: its values, its keys
local kinds, fault = '', nil -- the types that these keys should be of, and which is not
local drawn, replies = '', {} -- the last drawn text, the replies to the last =
local verbs, finishes = {}, {} -- by name; what verbs have to write at the end

-- note notes where an item of the template fills a word in: the words, the place, and the number of its value or key.
local function note(fills, args, place, number)
  local n = #fills
  fills[n + 1] = args
  fills[n + 2] = place
  fills[n + 3] = number
end

-- read_step reads the step at an argument, and moves on behind it. The template notes what an item fills in.
local function read_step(command, t)
  local head, verb = ARGV[at], verbs[ARGV[at + 1]]
  local before = verb and 1 or 0 -- its name is no argument
  local high, low = byte(head, 1, 2)
  local words = math.min(math.max(high * 64 + low - 3120, 0), 1000)
  local args = {unpack(ARGV, at + 1 + before, at + words)}
  local step = {run = verb or command, args = args}
  step.n = math.min(#args, 1000)
  for i = 3, #head, 2 do
    high, low = byte(head, i, i + 1)
    local place = high * 64 + low - 3120 - before
    local word = args[place]
    local mark = byte(word)
    if mark == 36 then -- $
      note(t.values, args, place, sub(word, 2) + 0)
    elseif mark == 37 then -- %
      note(t.keys, args, place, sub(word, 2) + 0)
    elseif mark == 64 then -- @
      local number = sub(word, 2) + 0
      args[place] = KEYS[number]
      step.wrong_type = step.wrong_type or wrong_types[number]
    elseif mark == 35 then -- #
      step.drawn = place
    else
      step.count = place
    end
  end
  at = at + words + 1
  return step
end

local function run(step)
  return step.run(unpack(step.args, 1, step.n))
end

-- note_wrong notes the key of the wrong type that a step of the item has met.
local function note_wrong(step, reply)
  fault = fault or reply.err
  local key = first
  for expected in gmatch(kinds, '%a+') do
    for i = 1, step.n do
      fault = step.args[i] == KEYS[key] and misfit(key, expected) or fault
    end
    key = key + 1
  end
end
