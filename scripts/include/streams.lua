-- Streams: events that are about no model go to the journal and to people.
local journal, outbox, stats, journal_cap = nil, nil, nil, 0
function verbs.streams(journal_key, outbox_key, stats_key, cap)
  journal, outbox, stats = journal_key, outbox_key, stats_key
  journal_cap = is_wrong[journal] and 0 or tonumber(cap)
end
