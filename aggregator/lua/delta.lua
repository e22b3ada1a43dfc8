-- Commits a delta that lies where nobody looks for it, and tells everybody who waits for its step. KEYS: work, table of the
-- round's deltas, log of the round, counts, index, and the delta's part where it lies on this server. ARGV: fence, field of
-- the table, digest, index entry of the delta, step, member, bytes, life of keys in s, table's index entry, log's index entry,
-- '1' where it is the member's last, checksum. Returns 'done', 'same' (the step's delta is there already, and is this one), 'other'
-- (and is another one) or 'stale' (another attempt has the claim).
local function refused(verdict, counted)
  redis.call('HINCRBY', KEYS[4], counted, 1)
  redis.call('EXPIRE', KEYS[4], ARGV[8])
  return verdict
end

local had = redis.call('HGET', KEYS[2], ARGV[2])
if had then
  if had == ARGV[3] .. ' ' .. ARGV[4] then
    return 'done' -- this very delivery, whose reply was lost
  end
  if string.sub(had, 1, #ARGV[3]) == ARGV[3] then
    return refused('same', 'duplicates')
  end
  return refused('other', 'duplicates')
end
if redis.call('HGET', KEYS[1], 'fence') ~= ARGV[1] then
  return refused('stale', 'stale')
end
if KEYS[6] and redis.call('EXISTS', KEYS[6]) == 0 then
  return redis.error_reply('ERR the delta is not there')
end
redis.call('HSET', KEYS[2], ARGV[2], ARGV[3] .. ' ' .. ARGV[4], 'newest:' .. ARGV[6], ARGV[5])
if ARGV[11] == '1' then
  redis.call('HSET', KEYS[2], 'ended:' .. ARGV[6], ARGV[5])
end
redis.call('EXPIRE', KEYS[2], ARGV[8])
redis.call('XADD', KEYS[3], '*', 'step', ARGV[5], 'member', ARGV[6], 'digest', ARGV[3], 'entry', ARGV[4], 'bytes', ARGV[7],
  'last', ARGV[11], 'sum', ARGV[12])
redis.call('EXPIRE', KEYS[3], ARGV[8])
redis.call('SADD', KEYS[5], ARGV[9], ARGV[10])
redis.call('EXPIRE', KEYS[5], ARGV[8])
return 'done'
