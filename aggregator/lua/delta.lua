-- Commits a delta and wakes everybody who waits for its step. A small delta is an argument and is stored in the round's
-- news; a large one is stored already under a staging key. News and log have the same entries with the same ids; the
-- log has them without the delta. KEYS: work, table of the round's deltas, log of the round, counts, index, news of the
-- round, and the part of the delta on this server, if there is one. ARGV: fence, field of the table, digest, entry of
-- the delta, step, member, bytes, life of keys in s, index entries of table, log and news, '1' for the member's last
-- delta, checksum, and a small delta itself.
-- Returns 'done' with the id of the previous entry ('0': none) and its own, 'same' if this delta was committed before,
-- 'other' if another one was, or 'stale' if another attempt has the claim.
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
-- ids start with the time in ms: the first delta in every thousand seconds renews the life of the keys
if string.sub(at, 1, 7) ~= string.sub(tail, 1, 7) then
  redis.call('SADD', KEYS[5], ARGV[9], ARGV[10], ARGV[11])
  for _, key in ipairs({KEYS[2], KEYS[3], KEYS[5], KEYS[6]}) do
    redis.call('EXPIRE', key, ARGV[8])
  end
end
return {'done', tail, at}
