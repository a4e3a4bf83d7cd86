-- Generated from words_test.go of package store, which explains the words: what follows each in an item.
local follows = {
  message = 'value', id = 'value', reply = 'value', reject = 'value', rev = 'value', attempt = 'value', push = 'value',
  back = 'value', policy = 'list', unknown = 'list', due = 'value', urgent = 'value', running = 'value',
  payload = 'value', history = 'value', attempts = 'list', notice = 'list', second = 'list', failing = 'value',
  disabled = 'value', parked = 'value', stale_at = 'value', late = 'value', stale = 'value', acquires = 'list',
  blocker = 'value', recheck = 'value', frees = 'list', closes = 'value', circuit = 'list', fingerprint = 'list',
  next = 'value',
}
