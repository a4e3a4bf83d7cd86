-- Steps. A line is a word and numbers, and after tabs a command or verb: "=text", "$2" a value of the item, "@3" a key
-- of the batch, "%1 list" a key of the item, "~" all fields, "#" the last drawn text, "+" how many items have applied
-- it. If the batch has named a key to another verb, a verb that uses the key has it after its arguments too.
-- Of the batch:
--   first: runs before all items
--   group: is run with what items collect for it; final: runs behind all items, if any that names it is applied
-- Of a template, which the line "item" ends:
--   again: an earlier item is about the subject of this one
--   check 2 6 = 3 0: refuses with 2, or 6 if a key is of the wrong type, unless the first replies are the values 3 and
--     "" (0); with "<" unless the reply is below the value; with "?" if the reply is true
--   fields 4: names, whose values are those from 4 on
--   do: the item needs it; help: it is left out if a key is of the wrong type
--   add 1 2 3: the values 2 and 3 are collected for group 1; try: likewise, where that only helps
--   last 1: final 1 is run
--   item 5 2 1: an item has 5 values and 2 keys, and changes its subject (1)
local ARGV, KEYS, type, unpack = ARGV, KEYS, type, unpack -- a local is read faster, and these are read most
local at, next_key, end_at = 5, places + 1, #ARGV
local from, first, subject = 0, 1, '' -- of the item in hand: its values, its keys
local fault, drawn, replies = nil, '', {} -- its key of the wrong type, the drawn text, the replies to the last =
local verbs, finishes = {}, {} -- by name; what verbs have to write at the end

-- note_fill notes an argument that an item fills in: of which step, its place, and the number of its value or key. The
-- three stand in one list, as tables cost more.
local function note_fill(fills, args, place, number)
  local n = #fills
  fills[n + 1], fills[n + 2], fills[n + 3] = args, place, tonumber(number)
end

-- read_step reads the words of a line.
local function read_step(words, command, t)
  local step, place, args = {run = command}, 0, {}
  for mark, text in string.gmatch(words, '\t(.)(%C*)') do
    place = place + 1
    args[place] = text
    if mark == '$' then
      note_fill(t.values, args, place, text)
    elseif mark == '@' then
      args[place] = KEYS[tonumber(text)]
      step.wrong_type = step.wrong_type or wrong_types[tonumber(text)]
    elseif mark == '%' then
      local number, expected = string.match(text, '^(%d+) (%a+)$')
      step.keys = step.keys or {}
      step.keys[tonumber(number)] = expected
      note_fill(t.keys, args, place, number)
    elseif mark == '~' then
      t.set, t.entry, t.further = t.set or args, t.set and args or t.entry, place + 1 - (t.place or place + 1)
      t.place, t.last_place = t.place or place + 1, t.last_place or place + 2 * #t.names - 1
      for i, name in ipairs(t.names) do
        args[place + 2 * i - 2] = name
      end
      place = place + 2 * #t.names - 1
    elseif mark == '#' then
      step.drawn = place
    elseif mark == '+' then
      step.count = place
    elseif place == 1 and verbs[text] then
      step.run, place = verbs[text], 0
    end
  end
  step.args = args
  step.n = math.min(place, 1000)
  return step
end

local function run(step)
  return step.run(unpack(step.args, 1, step.n))
end

-- note_wrong notes the key of the wrong type that a step of the item has met.
local function note_wrong(step, reply)
  fault = fault or reply.err
  for number, expected in pairs(step.keys or {}) do
    fault = misfit(first + number, expected) or fault
  end
end
