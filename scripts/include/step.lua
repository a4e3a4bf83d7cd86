-- Lines and steps. A word of a line is "=text", "$2" a value of the item, "@3" a key of the batch, "%1 list" a key of
-- the item, "#" what was drawn last, or "+" how many items have applied the line. The first word of a line says what
-- it is:
--   do a command or a verb, which the item needs; help one that is left out where a key is of another type
--   check a code, that of a key of another type, and when it is answered: = unless the replies are the words behind it,
--     < unless the reply is below the word behind it, ? if the reply is true, * never; how many words that are, and the
--     command or verb that replies, or what was read last
--   add a group, and the values that it collects; try likewise, but one that only helps
--   last a line that runs last, for all items together
local ARGV = ARGV -- a local is read faster, and this is read most
local at, next_key, end_at = 4, #types + 1, #ARGV
local from, first, subject = 0, 1, '' -- of the item in hand: its values, its keys
local fault, drawn = nil, '' -- of the item in hand: its key of another type, what was drawn for it
local verbs, finishes = {}, {} -- by name; what verbs have to write at the end

local function take_number()
  at = at + 1
  return math.min(tonumber(ARGV[at - 1]), end_at)
end

local function take_lines()
  local lines = {}
  for i = 1, take_number() do
    lines[i] = {}
    for n = 1, take_number() do
      lines[i][n] = ARGV[at]
      at = at + 1
    end
  end
  return lines
end

-- read_step reads the words of a line from one on. An item fills in what varies, by its place among the arguments.
local function read_step(line, word)
  local name = string.sub(line[word], 2)
  local step = {args = {}, places = {}, values = {}, key_places = {}, keys = {}, types = {}, run = verbs[name]}
  if step.run then
    word = word + 1
  end
  for i = word, #line do
    local place, mark, text = i - word + 1, string.sub(line[i], 1, 1), string.sub(line[i], 2)
    step.args[place] = text
    if mark == '$' then
      table.insert(step.places, place)
      table.insert(step.values, tonumber(text))
    elseif mark == '@' then
      step.args[place] = KEYS[tonumber(text)]
      step.unfit = step.unfit or unfit[tonumber(text)]
    elseif mark == '%' then
      local number, expected = string.match(text, '^(%d+) (%a+)$')
      table.insert(step.key_places, place)
      table.insert(step.keys, tonumber(number))
      table.insert(step.types, expected)
    elseif mark == '#' then
      step.drawn = place
    elseif mark == '+' then
      step.count = place
    end
  end
  step.n = math.min(#step.args, 1000)
  return step
end

-- run runs a step for the item in hand.
local function run(step)
  local args, places, values, key_places, keys = step.args, step.places, step.values, step.key_places, step.keys
  for i = 1, #places do
    args[places[i]] = ARGV[from + values[i]]
  end
  for i = 1, #keys do
    args[key_places[i]] = KEYS[first + keys[i]]
  end
  if step.drawn then
    args[step.drawn] = drawn
  end
  return step.run(unpack(args, 1, step.n)) --@ run
end

-- is_wrong reports whether a reply says that a key of the step is of another type, and notes that with the item.
local function is_wrong(step, reply)
  local wrong = type(reply) == 'table' and reply.err
  if wrong then
    local found = nil
    for i = 1, #step.keys do
      found = found or misfit(first + step.keys[i], step.types[i])
    end
    fault = found or wrong
  end
  return wrong
end

-- note keeps what is said of a key of another type that was left out.
local function note(text)
  unfit[text] = text
end
