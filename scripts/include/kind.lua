-- Kinds. Most items of a batch are of few kinds. A kind is a table with what is common to its items: under each of its
-- words what stands behind the "=". Of the item in hand it holds where its values and its keys begin, and its lists.
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

-- The words that bring further keys, in the order of these, and how many each.
local brings = {
  {'acquires', 2}, {'probe', 1}, {'labels', 1}, {'unlabels', 1}, {'unblocks', 1}, {'blocker', 1},
  {'frees', 1}, {'extends', 1}, {'closes', 1}, {'circuit', 1}, {'fingerprint', 3}, {'recovers', 1},
}

local function new_kind(words)
  local kind = {applied = 0, keys = 0, value_at = {}, places = {}, set = {}, lists = {}}
  local size = 2 -- the number of the kind and the uid
  local names = {note = {}, field = {}, now = {}, gone = {}, left = {}, count = {}}
  for _, word in ipairs(words) do
    local name, argument = string.match(word, '^(.-)=(.*)$')
    name, argument = name or word, argument or ''
    if names[name] then
      table.insert(names[name], argument)
    else
      local number = tonumber(argument)
      kind[name] = number and math.min(number, last_at) or argument
    end
    if follows[name] == 'list' then
      table.insert(kind.lists, name)
    elseif follows[name] and not names[name] then
      kind.value_at[name] = size
      size = size + 1
    end
    for _, place in ipairs(needs[name] or {}) do
      kind.blocked = kind.blocked or unfit[place] --@ blocked
    end
  end
  for _, further in ipairs(brings) do
    local word, count = further[1], kind[further[1]] and 1 or 0
    kind.places[word] = kind.keys
    kind.keys = kind.keys + (tonumber(kind[word]) or count) * further[2]
  end
  kind.notes_at, kind.fields_at = size, size + #names.note
  kind.size = kind.fields_at + #names.field
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

local kinds = {}
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
