-- Steps. A line is a word and numbers, and behind tabs a command or verb: "=text", "$2" a value of the item, "@3" a key
-- of the batch, "%1 list" a key of the item, "~" all fields, "#" what was drawn last, "+" how many items have applied
-- it.
--   do: the item needs it; help: it is left out where a key is of another type
--   check 2 6 = 3 0: refuses with 2, or 6 where a key is of another type, unless the first replies are the values 3 and
--     "" (0); with "<" unless the reply is below the value; with "?" if the reply is true
--   add 1 2 3: group 1 collects the values 2 and 3; try: likewise, where that only helps
--   need 4: the key of the batch; unless 2: refuses all items if the reply is true
--   fields 4: names, whose values are those from 4 on
--   last 5: this line runs last, once, if any item with it is applied
local ARGV, KEYS, type, unpack = ARGV, KEYS, type, unpack -- a local is read faster, and these are read most
local at, next_key, end_at = 4, places + 1, #ARGV
local from, first, subject = 0, 1, '' -- of the item in hand: its values, its keys
local fault, drawn, replies = nil, '', {} -- its key of another type, what was drawn, what the last = was compared with
local verbs, finishes = {}, {} -- by name; what verbs have to write at the end

-- read_step reads the words of a line. What an item fills in is noted with its template, by the place among arguments.
local function read_step(words, command, t)
  local step, place = {args = {}, keys = {}, types = {}, run = command}, 0
  for mark, text in string.gmatch(words, '\t(.)(%C*)') do
    place = place + 1
    step.args[place] = text
    if mark == '$' then
      t.fills[#t.fills + 1] = step.args
      t.places[#t.places + 1] = place
      t.values[#t.values + 1] = tonumber(text)
    elseif mark == '@' then
      step.args[place] = KEYS[tonumber(text)]
      step.unfit = step.unfit or unfit[tonumber(text)]
    elseif mark == '%' then
      local number, kind = string.match(text, '^(%d+) (%a+)$')
      step.keys[#step.keys + 1] = tonumber(number)
      step.types[#step.types + 1] = kind
      t.key_fills[#t.key_fills + 1] = step.args
      t.key_places[#t.key_places + 1] = place
      t.keys[#t.keys + 1] = tonumber(number)
    elseif mark == '~' then
      t.set, t.entry, t.further = t.set or step.args, t.set and step.args or t.entry, place + 1 - (t.place or place + 1)
      t.place, t.last_place = t.place or place + 1, t.last_place or place + 2 * #t.names - 1
      for i, name in ipairs(t.names) do
        step.args[place + 2 * i - 2] = name
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
  step.n = math.min(place, 1000)
  return step
end

local function run(step)
  return step.run(unpack(step.args, 1, step.n))
end

-- note_wrong notes with the item that a step has met a key of another type.
local function note_wrong(step, reply)
  fault = fault or reply.err
  for i, number in ipairs(step.keys) do
    fault = misfit(first + number, step.types[i]) or fault
  end
end
