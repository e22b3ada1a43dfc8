-- Draws the next batch of a round's queue for a step of a member. A repeated call for the same step returns the same
-- batch. KEYS: work, the round's draws, index. ARGV: fence, field of the draws (step and member), batches of the round,
-- life of keys in s, index entry of the draws, and the field that marks the member as released. Returns the batch, from
-- 0; -1 if none is left or the member is released; -2 if another attempt has the claim.
if redis.call('HGET', KEYS[1], 'fence') ~= ARGV[1] then
  return -2
end
local had = redis.call('HGET', KEYS[2], ARGV[2])
if had then
  return tonumber(had)
end
if redis.call('HGET', KEYS[2], ARGV[6]) then
  return -1
end
local batch
local back = redis.call('HGET', KEYS[2], 'back') -- of members that were ended: 'batch,batch,'
if back and back ~= '' then
  local first, rest = string.match(back, '^(%d+),(.*)$')
  batch = tonumber(first)
  redis.call('HSET', KEYS[2], 'back', rest)
else
  batch = tonumber(redis.call('HGET', KEYS[2], 'next') or '0')
  if batch >= tonumber(ARGV[3]) then
    return -1
  end
  redis.call('HSET', KEYS[2], 'next', batch + 1)
end
redis.call('HSET', KEYS[2], ARGV[2], batch)
redis.call('EXPIRE', KEYS[2], ARGV[4])
redis.call('SADD', KEYS[3], ARGV[5])
redis.call('EXPIRE', KEYS[3], ARGV[4])
return batch
