-- transition: compare-and-set of a sale's status over its declared source states.
--
-- Leaving NOT_STARTED needs the opening token: only the process that projected the inventory may flip the status, and
-- only while nobody has taken the opening over. The token is spent by the flip. A sale that is held for repair cannot be
-- resumed; resuming one whose repair is done takes the notice away.
--
-- KEYS  1 event:{E}:saleStatus  string
--       2 event:{E}:opening     string, TTL
--       3 event:{E}:held        hash    blocking, reason
-- ARGV  1 target status   2 opening token, or ''   3... the statuses that it may start from
--
-- Returns an array of strings; the first is the tag:
--   CHANGED     the status before
--   REFUSED     the status that the sale has
--   TOKEN_LOST  the status that the sale has; another process opens this sale
--   HELD        the status that the sale has; it is being repaired

local current = redis.call('GET', KEYS[1]) or 'NOT_STARTED'

local allowed = false
for i = 3, #ARGV do
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

redis.call('SET', KEYS[1], ARGV[1])
if ARGV[2] ~= '' then
  redis.call('DEL', KEYS[2])
end
if ARGV[1] == 'LIVE' then
  redis.call('DEL', KEYS[3])
end
return {'CHANGED', current}
