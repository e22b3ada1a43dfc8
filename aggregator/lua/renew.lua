-- Extends the lease of a claim, or ends it with a lease of 0. KEYS: work, cancel flag. ARGV: fence, lease in ms, life
-- of keys in s. Returns {whether the fence is current, whether the job was canceled}.
local cancel = redis.call('EXISTS', KEYS[2])
if redis.call('HGET', KEYS[1], 'fence') ~= ARGV[1] then
  return {0, cancel}
end
local t = redis.call('TIME')
local now = tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
redis.call('HSET', KEYS[1], 'lease', string.format('%.0f', now + tonumber(ARGV[2])))
redis.call('EXPIRE', KEYS[1], ARGV[3])
return {1, cancel}
