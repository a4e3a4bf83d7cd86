-- Outbox: what people are told. Incidents are about no model, and stand in the journal too.
local outbox = KEYS[9]
local notices, incidents = {}, {}

local function write_notice(item)
  notices[#notices + 1] = item.notice --@ outbox
end

local function write_second(item)
  notices[#notices + 1] = item.second --@ second
end

local function write_third(item)
  notices[#notices + 1] = item.third --@ third
end

local function write_outbox()
  for _, incident in ipairs(incidents) do
    notices[#notices + 1] = incident
    if journal_cap > 0 then
      write_entry(incident)
    end
  end
  for _, notice in ipairs(notices) do
    redis.call('XADD', outbox, '*', unpack(notice, 1, math.min(#notice, 1000)))
  end
end
