-- Commits a batch of decisions, in order. An item changes a model, or it settles a message that changes none. It is
-- applied only while its model and its message are as they were; a refused item changes nothing, and refuses the later
-- items of its model, which were decided on top of it. What all models of the batch share is written once, at the end.
--
-- KEYS[1] <queue>:due zset ZADD ZREM ZSCORE, uid -> refresh_at in Unix ms
-- KEYS[2] <queue>:running zset ZADD ZREM ZSCORE, uid -> when its attempt expires in Unix ms
-- KEYS[3] <queue>-input list LLEN LPOS LREM LSET RPUSH
-- KEYS[4] <queue>:claimed:<owner> list LRANGE LREM LTRIM
-- KEYS[5] <queue>:claimed:control list LRANGE LREM, the command queue
-- KEYS[6] <queue>:holder string GET, the poller that leads the command queue
-- KEYS[7] <queue>:rejected list LTRIM RPUSH
-- KEYS[8] <queue>:journal stream XADD XTRIM
-- KEYS[9] <queue>:outbox stream XADD
-- KEYS[10] <queue>:stats hash HGET HINCRBY
-- KEYS[11] <queue>:wake list LLEN RPUSH
-- KEYS[12] <queue>:policies hash HSETNX, name -> canonical JSON
-- KEYS[13] <queue>:urgent zset EXISTS ZADD ZREM ZSCORE, uid -> refresh_at in Unix ms
-- KEYS[14] <queue>:policy_uses hash HSET, inline policy -> "? <when a model was saved with it last in Unix ms>"
-- KEYS[15] <queue>:commands zset ZADD ZCOUNT ZREMRANGEBYRANK ZSCORE, id of a command -> when it was handled in Unix ms
-- KEYS[16] <queue>:failing zset ZADD ZREM ZSCORE, uid -> failing_since in Unix ms
-- KEYS[17] <queue>:disabled zset ZADD ZREM ZSCORE, uid -> refresh_disabled_at in Unix ms
-- KEYS[18] <queue>:parked zset ZADD ZREM ZSCORE, uid -> refresh_at in Unix ms
-- KEYS[19] <queue>:gates zset ZADD ZSCORE, blocker -> when a dispatcher is to look at it in Unix ms
-- KEYS[20] <queue>:holds hash HGET, id -> JSON; and changes, how many there were
-- KEYS[21] <queue>:stale_at zset ZADD ZREM ZSCORE, uid -> when its freshness changes next in Unix ms
-- KEYS[22] <queue>:late zset ZADD ZREM ZSCORE, uid -> when it becomes stale in Unix ms, or the end of time
-- KEYS[23] <queue>:stale zset ZADD ZREM ZSCORE, uid -> since when it is stale in Unix ms
-- KEYS[24] <queue>:errors zset ZCARD ZINCRBY ZREM ZSCORE, id of a fingerprint -> how many models are failing by it
-- KEYS[25] <queue>:past_errors zset EXPIRE ZADD ZCARD ZREM ZREMRANGEBYSCORE, id of one by which none fails any more ->
--   since when in Unix ms
-- KEYS[26..] of each item its own, as many as its word keys says: <queue>:model:<uid> hash DEL EXISTS HDEL HGET HMGET
--   HSET, <queue>:history:<uid> list DEL EXISTS LPUSH LSET LTRIM, <queue>:payload:<uid> string DEL EXISTS SET,
--   <queue>:reply:<name> list EXPIRE LTRIM RPUSH; and those that its words bring, see kind.lua: <queue>:limit:<name>
--   zset ZADD ZCARD ZREM ZSCORE, <queue>:rate:<name> string GET SET, <queue>:circuit:<key> hash EXPIRE HDEL HINCRBY
--   HMGET HSET, <queue>:label:<name> set SADD SREM, <queue>:parked:<name> zset ZADD ZCARD ZREM ZSCORE,
--   <queue>:error:<name> hash DEL EXPIRE HGET HINCRBY HSET HSETNX PERSIST, <queue>:logs list LTRIM RPUSH
-- ARGV[1] the instant of the batch in RFC 3339
-- ARGV[2] the same in Unix ms
-- ARGV[3] most entries in input
-- ARGV[4] journal cap, in entries
-- ARGV[5] history cap, in entries of one model
-- ARGV[6] rejected cap, in entries
-- ARGV[7] owner of the claimed messages, "" = there are none
-- ARGV[8] how many changes of holds there were when the batch was decided: after another one no attempt is started
-- ARGV[9] how many kinds of items there are
-- ARGV[10..] the kinds, each a list of words behind its length, and then the items: the number of the kind, the uid,
--   the value of each word that is followed by one, in their order, those of its notes and fields last, and its lists.
--   docs/architecture.md explains the words, and kind.lua what stands around them
-- Returns a code per item: 1 applied, 2 conflict (the model has changed), 3 gone (the message is not claimed, or is a
--   command and the owner has lost the command queue), 4 taken (the entry that must be queued is not), 5 full (input),
--   6 broken (the model is no hash), 7 duplicate (a command with that id was handled within a day), 8 limited (a key
--   has no room for the start, or its slot is taken), 9 blocked (another key that it needs is of another type). Behind
--   a space stands which key was of another type; and behind the codes a list of those that only help
-- include: types, misfits, chunks, batch, kind, fence, message, command, input, model, journal, outbox, index
-- include: label, blocker, limit, circuit_turn, circuit, failure_group, fingerprint, policy, log, shared, item

-- What else is written, and may refuse an item, by the words that ask for it, in this order.
local effects = {
  {'remove', write_remove, check_remove}, {'unknown', write_unknown}, {'payload', write_payload},
  {'history', write_history}, {'attempts', write_attempts}, {'acquires', write_acquires, check_limits},
  {'probe', write_probe, check_probe},
  {'labels', write_labels}, {'unlabels', write_unlabels}, {'unblocks', write_unblocks},
  {'blocker', write_blocker, check_blocker}, {'frees', write_frees}, {'extends', write_extends},
  {'closes', write_closes}, {'circuit', write_circuit}, {'reject', write_reject}, {'id', write_id},
  {'reply', write_reply}, {'back', write_back}, {'policy', write_policy}, {'notice', write_notice},
  {'second', write_second}, {'third', write_third}, {'log', write_log},
}
for _, effect in ipairs(effects) do
  local word, write, check = unpack(effect, 1, 3)
  for _, kind in ipairs(kinds) do
    kind.effects[#kind.effects + 1] = kind[word] and write
    kind.checks[#kind.checks + 1] = kind[word] and check
  end
end

local codes = {}
while at <= last_at do
  codes[#codes + 1] = apply(kinds[tonumber(ARGV[at])])
end
write_shared()
codes[#codes + 1] = list_of(unfit)
return codes
