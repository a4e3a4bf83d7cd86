-- Deeds. write_deed keeps what somebody has done: fields and values, each on a line, and then a number if there is one.
-- What is done does not fail by it.
local function write_deed(deeds, deed, number)
  local words = {}
  for word in string.gmatch(deed, '%C+') do
    words[#words + 1] = word
  end
  if number then
    words[#words + 1] = 'models'
    words[#words + 1] = number
  end
  if deed ~= '' and number ~= 0 then
    redis.pcall('XADD', deeds, 'MAXLEN', '~', 10000, '*', unpack(words, 1, math.min(#words, 100))) --@ deed
  end
end
