-- Kinds. Most items of a batch are of few kinds. A kind is a table with what is common to its items, and holds the
-- values of the item in hand: a word that is followed by a value or a list has it under its name, any other word what
-- stands behind its "=".
local ARGV = ARGV -- a local is read faster, and this is read most
local at, next_key, last_at = 10, 26, #ARGV
local function take_list()
  local list = {}
  local last = at + math.min(tonumber(ARGV[at]), last_at)
  for i = at + 1, last do
    list[i - at] = ARGV[i]
  end
  at = last + 1
  return list
end

-- append puts names with the same value behind what a list of names and values holds.
local function append(list, names, value)
  for _, name in ipairs(names) do
    list[#list + 1] = name
    list[#list + 1] = value
  end
end

-- The words that bring further keys, in the order of these, and how many each.
local brings = {
  {'acquires', 2}, {'probe', 1}, {'labels', 1}, {'unlabels', 1}, {'unblocks', 1}, {'blocker', 1},
  {'frees', 1}, {'extends', 1}, {'closes', 1}, {'circuit', 1}, {'fingerprint', 3}, {'recovers', 3},
}

local function new_kind(words)
  local kind = {
    applied = 0, said = {}, places = {}, keys = 0, values = {}, value_at = {}, is_list = {},
    counters = {}, notes = {}, now = {}, fields = {}, gone = {}, delete = {}, set = {},
  }
  local lists = {
    count = kind.counters, note = kind.notes, now = kind.now, field = kind.fields, gone = kind.gone, left = kind.delete,
  }
  for _, word in ipairs(words) do
    local name, argument = string.match(word, '^(.-)=(.*)$')
    name, argument = name or word, argument or ''
    if lists[name] then
      table.insert(lists[name], argument)
    else
      kind.said[name] = tonumber(argument) or 1
      kind[name] = argument
    end
    if follows[name] then
      table.insert(kind.values, name)
      kind.value_at[name] = #kind.values + 1 -- behind the number of the kind and the uid
      kind.is_list[#kind.values] = follows[name] == 'list'
    end
    for _, place in ipairs(needs[name] or {}) do
      kind.blocked = kind.blocked or unfit[place] --@ blocked
    end
  end
  kind.keys, kind.no_attempt = kind.said.keys or 0, not kind.settle and '' or nil
  for _, further in ipairs(brings) do
    kind.places[further[1]] = kind.keys
    kind.keys = kind.keys + (kind.said[further[1]] or 0) * further[2]
  end
  kind.entry = {'event', kind.event or '', 'uid', '', 'at', instant}
  append(kind.entry, kind.notes, '')
  for _, list in ipairs({kind.set, kind.entry}) do
    append(list, kind.fields, '')
    append(list, kind.now, instant)
    append(list, kind.ticket and {'ticket'} or kind.fingerprint and {'error'} or {}, '')
  end
  kind.entry_own = #kind.entry -- what only this script knows
  append(kind.entry, kind.gone, '')
  for _, name in ipairs(kind.gone) do
    table.insert(kind.delete, name)
  end
  return kind
end

local kinds = {}
for i = 1, math.min(tonumber(ARGV[9]), last_at) do
  kinds[i] = new_kind(take_list())
end
