-- Moves the entries of a worker pool back to the head of the input list, in their order, and forgets the pool. Both happen at once, so
-- that a pool which was only slow learns of it by its next sign of life.
-- KEYS[1] <queue>:workers zset, owner -> last sign of life ms   KEYS[2] <queue>:taken:<owner> list   KEYS[3] <queue>-input list
-- ARGV[1] owner   ARGV[2] the last sign of life in Unix ms by which it was judged silent, "" = the owner itself leaves
-- ARGV[3..] entries to drop, because nobody is to work on them any more
-- Returns how many entries were handed back; -1: the owner has given a sign of life since, or is forgotten
local workers, taken, input = KEYS[1], KEYS[2], KEYS[3]
local owner, judged = ARGV[1], ARGV[2]
local seen = redis.call('ZSCORE', workers, owner)
if judged ~= '' and (not seen or tonumber(seen) ~= tonumber(judged)) then return -1 end
for i = 3, #ARGV do redis.call('LREM', taken, 1, ARGV[i]) end
local moved = 0
while redis.call('LMOVE', taken, input, 'RIGHT', 'LEFT') do moved = moved + 1 end
redis.call('ZREM', workers, owner)
return moved
