-- Steps. A line begins with a letter. Most are steps: two characters follow, how many words it has ("00" is none, of 64
-- each), then the words of a command or verb. Pairs of such characters name the places of words to fill in: "$2" with a
-- value of the item, "@3" with a key of the batch, "%1" with a key of the item, "#" with the last drawn text, "+" with
-- how many items have applied it. If the batch has named a key to another verb, a verb that uses the key has it after
-- its arguments too.
-- Of the batch:
--   f: runs before all items
--   g: a group, which is run with what items collect for it; l: runs last, if any item that names it is applied
-- Of an item:
--   a check: "=", number of words, "26" refuses with 2, or 6 if a key is of the wrong type, unless the reply is the
--     word behind the others; "&": unless the first two replies are the two words behind; "<": unless it is below the
--     word behind; "?": if the reply is true. In a template the words behind are numbers of values, or empty
--   d: the item needs it; h: it helps, and is left out if a key is of the wrong type
-- Of a template, beside these:
--   s: an earlier item is about the same subject
--   a "1 2 3": the values 2 and 3 are collected for group 1; t: likewise, where that only helps
--   b "1": the step 1 behind all items is run
--   i "5 2 1 hash list": the template ends, its items have 5 values and 2 keys of these types, and change their subject
local ARGV, KEYS, type, unpack = ARGV, KEYS, type, unpack -- a local is read faster, and these are read most
local byte, gmatch, match, sub, tonumber = string.byte, string.gmatch, string.match, string.sub, tonumber
local at, next_key, end_at = 5, places + 1, #ARGV
local first, subject = 1, '' -- of the item in hand: its keys
local kinds, fault = '', nil -- the types that these keys should be of, and which is not
local drawn, replies = '', {} -- the last drawn text, the replies to the last &
local verbs, finishes = {}, {} -- by name; what verbs have to write at the end
local wants = {['='] = 1, ['&'] = 2, ['<'] = 1, ['?'] = 0} -- how many words come behind those of a check

-- note_wrong notes the key of the wrong type that a step of the item has met.
local function note_wrong(args, reply)
  fault = fault or reply.err
  local key = first
  for expected in gmatch(kinds, '%a+') do
    for i = 1, #args do
      fault = args[i] == KEYS[key] and misfit(key, expected) or fault
    end
    key = key + 1
  end
end

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
  local how, before = sub(head, 1, 1), verb and 1 or 0 -- its name is no argument
  local high, low, code, wrong = byte(head, 2, 5)
  local words, behind = (high * 64 + low - 3120) % 1001, wants[how]
  local args = {unpack(ARGV, at + 1 + before, at + words)}
  local step = {run = verb or command, args = args, how = how, soft = verb or how ~= 'd'}
  step.n = math.min(#args, 1000)
  at = at + words + 1
  if behind then
    step.code, step.wrong, step.one, step.two = code - 48, wrong - 48, tonumber(ARGV[at]), tonumber(ARGV[at + 1])
    at = at + behind
  end
  for i = behind and 6 or 4, #head, 2 do
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
  return step
end

local function run(step)
  return step.run(unpack(step.args, 1, step.n))
end
