-- Commits a delta, and tells everybody who waits for its step. A small one comes along and lies in the round's news; another
-- one lies already where nobody looks for it. News and log have the same entries, with the same ids; the log has them without
-- what was sent. KEYS: work, table of the round's deltas, log of the round, counts, index, news of the round, and the delta's
-- part where it lies on this server. ARGV: fence, field of the table, digest, entry of the delta, step, member, bytes, life of
-- keys in s, table's index entry, log's and news' index entries, '1' where it is the member's last, checksum, and the delta
-- where it comes along. Returns 'done', with the id of the entry before ('0': there was none) and its own, where it was not there
-- before, 'same' (the step's delta is there already, and is this one), 'other' (and is another one) or 'stale' (another attempt
-- has the claim).
local function refused(verdict, counted)
  redis.call('HINCRBY', KEYS[4], counted, 1)
  redis.call('EXPIRE', KEYS[4], ARGV[8])
  return {verdict}
end

local had = redis.call('HGET', KEYS[2], ARGV[2])
if had then
  if had == ARGV[3] .. ' ' .. ARGV[4] then
    return {'done'} -- this very delivery, whose reply was lost
  end
  if string.sub(had, 1, #ARGV[3]) == ARGV[3] then
    return refused('same', 'duplicates')
  end
  return refused('other', 'duplicates')
end
if redis.call('HGET', KEYS[1], 'fence') ~= ARGV[1] then
  return refused('stale', 'stale')
end
if KEYS[7] and redis.call('EXISTS', KEYS[7]) == 0 then
  return redis.error_reply('ERR the delta is not there')
end
local tail = redis.call('HGET', KEYS[2], 'tail') or '0'
local at -- what may find no room goes first
if ARGV[14] then
  at = redis.call('XADD', KEYS[6], '*', 'step', ARGV[5], 'member', ARGV[6], 'entry', ARGV[4], 'last', ARGV[12], 'sum', ARGV[13],
    'data', ARGV[14])
else
  at = redis.call('XADD', KEYS[6], '*', 'step', ARGV[5], 'member', ARGV[6], 'entry', ARGV[4], 'last', ARGV[12], 'sum', ARGV[13])
end
redis.call('XADD', KEYS[3], at, 'step', ARGV[5], 'member', ARGV[6], 'digest', ARGV[3], 'entry', ARGV[4], 'bytes', ARGV[7],
  'last', ARGV[12], 'sum', ARGV[13])
redis.call('HSET', KEYS[2], ARGV[2], ARGV[3] .. ' ' .. ARGV[4], 'newest:' .. ARGV[6], ARGV[5], 'tail', at)
if ARGV[12] == '1' then
  redis.call('HSET', KEYS[2], 'ended:' .. ARGV[6], ARGV[5])
end
-- an id begins with the time in ms: lifetimes are renewed by the first delta of every thousand seconds, however long steps take
if string.sub(at, 1, 7) ~= string.sub(tail, 1, 7) then
  redis.call('SADD', KEYS[5], ARGV[9], ARGV[10], ARGV[11])
  for _, key in ipairs({KEYS[2], KEYS[3], KEYS[5], KEYS[6]}) do
    redis.call('EXPIRE', key, ARGV[8])
  end
end
return {'done', tail, at}
