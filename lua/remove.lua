-- remove: unlinks a bounded batch of an event's keys and strikes them from the set that lists them, only while the
-- sale has the status that makes this right.
--
-- Two callers: a failed opening (status NOT_STARTED, under its token) and the clean-up after settlement (status
-- STOPPED, every booking in the batch confirmed by MongoDB).
--
-- KEYS  1 event:{E}:saleStatus  string
--       2 event:{E}:opening     string
--       3 the set that lists the keys (event:{E}:productKeys or event:{E}:bookings)
--       4... the keys
-- ARGV  1 the status that the sale must have   2 the opening token that must be good, or ''
--
-- Returns an array of strings; the first is the tag:
--   REMOVED     how many keys existed
--   REFUSED     the status that the sale has; nothing was removed
--   TOKEN_LOST  the token is not good any more; nothing was removed

local status = redis.call('GET', KEYS[1]) or 'NOT_STARTED'
if status ~= ARGV[1] then
  return {'REFUSED', status}
end
if ARGV[2] ~= '' and redis.call('GET', KEYS[2]) ~= ARGV[2] then
  return {'TOKEN_LOST'}
end

-- A wrong type of the set is an error before anything is removed.
redis.call('SCARD', KEYS[3])
local keys = {unpack(KEYS, 4)}
if #keys == 0 then
  return {'REMOVED', '0'}
end
-- Two calls for the whole batch: a call for each key would keep the server busy ten times as long.
local removed = redis.call('UNLINK', unpack(keys))
redis.call('SREM', KEYS[3], unpack(keys))
return {'REMOVED', string.format('%d', removed)}
