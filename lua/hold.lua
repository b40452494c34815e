-- hold: stops a running sale from selling until it is repaired, and says why.
--
-- KEYS  1 event:{E}:saleStatus   string
--       2 event:{E}:held         hash    written here: blocking, reason
--       3 event:{E}:productKeys  set     + KEYS[2], for removal
-- ARGV  1 reason
--
-- Returns an array of strings; the first is the tag:
--   HELD     the status before: LIVE or PAUSED; now it is PAUSED
--   REFUSED  the status that the sale has; nothing was changed

local status = redis.call('GET', KEYS[1]) or 'NOT_STARTED'
if status ~= 'LIVE' and status ~= 'PAUSED' then
  return {'REFUSED', status}
end
redis.call('SADD', KEYS[3], KEYS[2])
redis.call('HSET', KEYS[2], 'blocking', '1', 'reason', ARGV[1])
redis.call('SET', KEYS[1], 'PAUSED')
return {'HELD', status}
