-- Commits a staged value. KEYS: work, staged head, committed head, counts, index, table of the kind, references.
-- ARGV: kind, fence ('0': without a claim), fence as encoded in a head, digest, version, field of the table, index
-- entry of the staged value, index entry of work, life of keys in s, slack. The version of an update is that of the
-- reference that it starts from; the newest reference may be at most slack ahead. A reference must follow the newest
-- one, whatever the slack.
-- Returns {verdict, index entry of the replaced value or ''}.
local kind, fence, digest, life = ARGV[1], ARGV[2], ARGV[4], ARGV[9]

local function refused(verdict, counted)
  if counted then
    redis.call('HINCRBY', KEYS[4], counted, 1)
    redis.call('EXPIRE', KEYS[4], life)
  end
  return {verdict, ''}
end

-- unclaimed work accepts a value without a claim
local function current(held)
  return held == fence or (not held and fence == '0')
end

local work = redis.call('HMGET', KEYS[1], 'fence', 'digest', 'entry')

-- a value was committed before: the same one, whose reply was lost, or another one
local function again(had, staged)
  if staged == ARGV[7] then
    return {'done', ''}
  end
  if had == digest then
    return refused('same', 'duplicates')
  end
  return refused('other', 'duplicates')
end

local replaced = ''
if kind == 'update' and work[2] then
  if work[1] or fence ~= '0' or work[2] == digest then
    return again(work[2], work[3])
  end
  replaced = work[3] -- without claims the last one stands
end

local newest = redis.call('HGET', KEYS[7], 'newest')
if kind == 'update' and newest and tonumber(newest) > tonumber(ARGV[5]) + tonumber(ARGV[10]) then
  return refused('round', 'stale') -- the references have gone on without it
end

if kind == 'reference' then
  local have = redis.call('HMGET', KEYS[6], ARGV[6], ARGV[6] .. ':entry')
  if have[1] then
    return again(have[1], have[2])
  end
  if newest and tonumber(ARGV[5]) ~= tonumber(newest) + 1 then
    return refused('round', 'stale')
  end
end

if kind == 'state' and redis.call('HGET', KEYS[6], ARGV[6]) == ARGV[7] then
  return {'done', ''}
end

if not current(work[1]) then
  return refused('stale', 'stale')
end
if redis.call('GETRANGE', KEYS[2], 32, 39) ~= ARGV[3] then
  return refused('head', nil)
end

redis.call('RENAME', KEYS[2], KEYS[3])
if string.sub(ARGV[7], -2) == ' 0' then
  redis.call('SREM', KEYS[5], ARGV[7]) -- nothing lies beside the head, which has another name now
end
redis.call('EXPIRE', KEYS[5], life)

if kind == 'state' then
  replaced = redis.call('HGET', KEYS[6], ARGV[6]) or ''
  redis.call('HSET', KEYS[6], ARGV[6], ARGV[7])
  redis.call('EXPIRE', KEYS[6], life)
  return {'done', replaced}
end
if kind == 'reference' then
  redis.call('HSET', KEYS[6], ARGV[6], digest, ARGV[6] .. ':entry', ARGV[7], 'newest', ARGV[5])
  redis.call('EXPIRE', KEYS[6], life)
end
if kind == 'update' or fence ~= '0' then
  redis.call('HSET', KEYS[1], 'digest', digest, 'entry', ARGV[7])
  redis.call('EXPIRE', KEYS[1], life)
  redis.call('SADD', KEYS[5], ARGV[8])
end
return {'done', replaced}
