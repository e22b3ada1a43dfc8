-- Removes a member that will not return from a round. Its later deltas are refused. An entry without a delta in news
-- and log, for the step after its newest, wakes those who wait for it. A batch that it drew and did not send goes back.
-- KEYS: work, table of the round's deltas, log of the round, the round's draws, index, news of the round. ARGV: member,
-- life of keys in s, index entries of work, table, log and news. Returns the step; 0 if the member has left or was
-- removed already.
local newest = tonumber(redis.call('HGET', KEYS[2], 'newest:' .. ARGV[1]) or '0')
if redis.call('HGET', KEYS[2], 'ended:' .. ARGV[1]) then
  return 0
end
local step = newest + 1
redis.call('HSET', KEYS[1], 'fence', '0', 'digest', 'ended')
redis.call('EXPIRE', KEYS[1], ARGV[2])
local at = redis.call('XADD', KEYS[6], '*', 'step', step, 'member', ARGV[1], 'entry', 'none', 'last', '1', 'sum', '')
redis.call('HSET', KEYS[2], 'newest:' .. ARGV[1], step, 'ended:' .. ARGV[1], step, 'tail', at)
redis.call('EXPIRE', KEYS[2], ARGV[2])
local drawn = redis.call('HGET', KEYS[4], step .. ':' .. ARGV[1])
if drawn then
  redis.call('HSET', KEYS[4], 'back', (redis.call('HGET', KEYS[4], 'back') or '') .. drawn .. ',')
end
redis.call('XADD', KEYS[3], at, 'step', step, 'member', ARGV[1], 'digest', '', 'entry', 'none', 'bytes', 0, 'last', '1')
redis.call('SADD', KEYS[5], ARGV[3], ARGV[4], ARGV[5], ARGV[6])
for _, key in ipairs({KEYS[3], KEYS[5], KEYS[6]}) do
  redis.call('EXPIRE', key, ARGV[2])
end
return step
