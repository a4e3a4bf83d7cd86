-- Kinds. Most items of a batch are of few kinds. A kind is a table with what is common to its items: under each of its
-- words what stands behind it. Of the item in hand it holds where its values and its keys begin, and its lists.
-- Before a word stands "$" if a value of the item follows it, "*" if a list does; behind it "#" and how many keys it
-- brings, or "=" and a name.
local ARGV = ARGV -- a local is read faster, and this is read most
local at, next_key, last_at = 10, 26, #ARGV
local function take_list()
  local list = {}
  local last = at + math.max(0, math.min(tonumber(ARGV[at]), last_at))
  for i = at + 1, last do
    list[i - at] = ARGV[i]
  end
  at = last + 1
  return list
end

-- append puts names behind what a list holds, each with a value if there is one.
local function append(list, names, value)
  for _, name in ipairs(names) do
    list[#list + 1] = name
    list[#list + 1] = value
  end
end

local kinds, uses = {}, {} -- which words there are in any of them

local function new_kind(words)
  local kind = {
    applied = 0, value_at = {}, places = {}, brings = {}, set = {}, lists = {}, indexes = {}, checks = {},
    effects = {},
  }
  local size, keys = 2, 0 -- the number of the kind and the uid are the first values
  local names = {note = {}, field = {}, now = {}, gone = {}, left = {}, count = {}}
  for _, word in ipairs(words) do
    local follows, name, mark, argument = string.match(word, '^(%W?)(%a+_?%a*)(%W?)(.*)$')
    if names[name] then
      table.insert(names[name], argument)
    elseif follows == '*' then
      table.insert(kind.lists, name)
    elseif follows == '$' then
      kind.value_at[name] = size
      size = size + 1
    end
    if mark == '#' then
      kind.places[name], kind.brings[name] = keys, math.min(tonumber(argument), last_at)
      keys = keys + kind.brings[name]
    end
    kind[name], uses[name] = argument, true
    for _, place in ipairs(needs[name] or {}) do
      kind.blocked = kind.blocked or unfit[place] --@ blocked
    end
  end
  kind.notes_at, kind.fields_at = size, size + #names.note
  kind.size, kind.keys = kind.fields_at + #names.field, keys
  local own = kind.ticket and {'ticket'} or kind.fingerprint and {'error'} or {} -- what only this script knows
  local entry = {'event', kind.event or '', 'uid', '', 'at', instant}
  append(kind.set, kind.next and {'rev'} or {}, '')
  append(kind.set, names.field, '')
  append(kind.set, names.now, instant)
  append(kind.set, own, '')
  append(entry, names.note, '')
  append(entry, names.field, '')
  append(entry, #names.now > 0 and {'now'} or {}, table.concat(names.now, ' '))
  append(entry, #names.gone > 0 and {'gone'} or {}, table.concat(names.gone, ' '))
  append(entry, own, '')
  append(names.gone, names.left)
  kind.sorts = kind.fingerprint or kind.recovers
  kind.entry, kind.counters, kind.gone = entry, names.count, names.gone
  return kind
end

for i = 1, math.min(tonumber(ARGV[9]), last_at) do
  kinds[i] = new_kind(take_list())
end

-- value_of is what follows a word of the item in hand.
local function value_of(item, word)
  return ARGV[item.from + item.value_at[word]]
end

-- place_of is where in KEYS the n-th key stands, from 0 on, that a word of the item in hand brings.
local function place_of(item, word, n)
  return item.first + item.places[word] + n
end

-- each_key returns a function that calls act for each key that a word brings. act returns the reply to what it writes.
local function each_key(word, expected, act)
  return function(item)
    for i = 0, item.brings[word] - 1 do
      local place = place_of(item, word, i)
      is_wrong(item, act(KEYS[place], item, i + 1), place, expected)
    end
  end
end
