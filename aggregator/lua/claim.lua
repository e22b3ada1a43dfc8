-- Takes a claim on an update. KEYS: work, index, counts, references. ARGV: owner, attempt, lease in ms, life of keys in
-- s, the index entry of work, version, slack. The version is that of the reference that the work starts from; the
-- newest reference may be at most slack ahead. Returns {state, fence, rest of the holder's lease in ms}.
local t = redis.call('TIME')
local now = tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
local w = redis.call('HMGET', KEYS[1], 'owner', 'attempt', 'fence', 'lease', 'digest')
local newest = redis.call('HGET', KEYS[4], 'newest')
-- an update that starts too far back would be refused
if w[5] or (newest and tonumber(newest) > tonumber(ARGV[6]) + tonumber(ARGV[7])) then
  redis.call('HINCRBY', KEYS[3], 'duplicates', 1)
  redis.call('EXPIRE', KEYS[3], ARGV[4])
  return {'committed', w[3] or '0', 0}
end
local fence = tonumber(w[3] or '0')
if w[1] == ARGV[1] and w[2] == ARGV[2] then
  -- the same request again, after a lost reply
elseif w[1] and tonumber(w[4]) > now and tonumber(w[2]) >= tonumber(ARGV[2]) then
  return {'busy', w[3], tonumber(w[4]) - now}
else
  -- from the clock, so that fences grow even after a sweep of the job
  fence = math.max(fence + 1, tonumber(t[1]) * 1000000 + tonumber(t[2]))
end
local text = string.format('%.0f', fence)
redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'attempt', ARGV[2], 'fence', text, 'lease', string.format('%.0f', now + tonumber(ARGV[3])))
redis.call('EXPIRE', KEYS[1], ARGV[4])
redis.call('SADD', KEYS[2], ARGV[5])
redis.call('EXPIRE', KEYS[2], ARGV[4])
return {'claimed', text, 0}
