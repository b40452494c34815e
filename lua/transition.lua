-- transition: compare-and-set of a sale's status over its declared source states.
--
-- Leaving NOT_STARTED needs the opening token: only the process that projected the inventory may flip the status, and
-- only while nobody has taken the opening over. The token is spent by the flip. A sale that is held for repair cannot be
-- resumed; resuming one whose repair is done takes the notice away.
--
-- What is done on schedule carries its moment along: this clock decides whether it has come, and not the clock of the
-- process that asks.
--
-- KEYS  1 event:{E}:saleStatus  string
--       2 event:{E}:opening     string, TTL
--       3 event:{E}:held        hash    blocking, reason
-- ARGV  1 target status   2 opening token, or ''   3 not before this moment (ms), or ''
--       4... the statuses that it may start from
-- TIME  Redis TIME, milliseconds; read only if there is a moment.
--
-- Returns an array of strings; the first is the tag:
--   CHANGED     the status before
--   REFUSED     the status that the sale has
--   TOKEN_LOST  the status that the sale has; another process opens this sale
--   HELD        the status that the sale has; it is being repaired
--   TOO_EARLY   the status that the sale has; the moment has not come

local current = redis.call('GET', KEYS[1]) or 'NOT_STARTED'

local allowed = false
for i = 4, #ARGV do
  if ARGV[i] == current then
    allowed = true
  end
end
if not allowed then
  return {'REFUSED', current}
end

if ARGV[2] ~= '' and redis.call('GET', KEYS[2]) ~= ARGV[2] then
  return {'TOKEN_LOST', current}
end
if ARGV[1] == 'LIVE' and redis.call('HGET', KEYS[3], 'blocking') == '1' then
  return {'HELD', current}
end
if ARGV[3] ~= '' then
  local time = redis.call('TIME')
  local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
  local moment = tonumber(ARGV[3])
  if not moment or now < moment then
    return {'TOO_EARLY', current}
  end
end

redis.call('SET', KEYS[1], ARGV[1])
if ARGV[2] ~= '' then
  redis.call('DEL', KEYS[2])
end
if ARGV[1] == 'LIVE' then
  redis.call('DEL', KEYS[3])
end
return {'CHANGED', current}
