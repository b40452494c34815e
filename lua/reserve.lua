-- reserve: decides one reservation, in one atomic step.
--
-- Everything is read and checked first; the first write can only happen when nothing is left that could fail, because
-- Redis does not roll back a script that fails half-way. The reads of SCARD, ZCARD and XLEN are there to raise WRONGTYPE
-- before the first write. HINCRBY comes first among the writes: under memory pressure (noeviction) it is refused, and
-- with it everything.
--
-- With a payment window the units are held, unpaid, until the window closes. Holds whose time has passed are somebody
-- else's keys, so they are not released here: when units are short and such holds exist, or the buyer's own hold has run
-- out, the answer names them. The caller releases them (release.lua) and asks again.
--
-- A caller that waits for replicas (WAIT) asks for a write whenever the answer tells of a reservation. WAIT covers only
-- what its own connection wrote, and an earlier reservation was written over another one, perhaps to a replica that never
-- got it. So a field of the booking is set to what it is: replication keeps the order of writes, so a replica that
-- acknowledges this one has the reservation, too.
--
-- KEYS  1 event:{E}:saleStatus         string
--       2 product:P:{E}                hash    stock, price, currency, limit, held, window (ms), endsAt (ms, or '')
--       3 booking:U:P:{E}              hash    written here; an older one that was cancelled or has expired is replaced
--       4 event:{E}:product:P:winners  set     + user
--       5 event:{E}:bookings           set     + KEYS[3]
--       6 event:{E}:productKeys        set     read: tells an unknown product from an evicted one
--       7 event:{E}:journal            stream  + one entry
--       8 event:{E}:holds              zset    + 'product:user' at its expiry (ms), with a payment window
-- ARGV  1 user id   2 product id   3 event id   4 reservation id (new)   5 quantity (integer text)
--       6 idempotency key, or ''   7 '1' if the caller waits for replicas
-- TIME  Redis TIME, milliseconds.
--
-- Returns an array of strings; the first is the tag:
--   RESERVED          reservationId quantity price currency status bookedAt expiresAt ('' when confirmed) revision returned
--   REPLAYED          the same, of the earlier reservation made with this idempotency key and quantity
--   ALREADY_RESERVED  the same, of the reservation that the buyer has
--   KEY_REUSED        the buyer's reservation was made with this idempotency key and another quantity
--   RECLAIM           members of KEYS[8] whose time has passed: release them and ask again
--   SOLD_OUT          too few units
--   NOT_LIVE          the status that the sale has
--   UNKNOWN_PRODUCT   the sale has no such product
--   LIMIT_REACHED     units that one buyer may have
--   DAMAGED           what is wrong; nothing was changed

local RECLAIMED_MAX = 64

local status = redis.call('GET', KEYS[1]) or 'NOT_STARTED'

local booking = redis.call('HMGET', KEYS[3],
  'reservationId', 'quantity', 'price', 'currency', 'status', 'bookedAt', 'expiresAt', 'revision', 'returned',
  'idempotencyKey', 'slot')

local function tell(tag)
  if ARGV[7] == '1' then
    redis.call('HSET', KEYS[3], 'reservationId', booking[1])
  end
  return {tag, booking[1], booking[2] or '', booking[3] or '', booking[4] or '', booking[5] or '', booking[6] or '',
    booking[7] or '', booking[8] or '1', booking[9] or '0'}
end

if booking[1] and ARGV[6] ~= '' and booking[10] == ARGV[6] then
  if booking[2] ~= ARGV[5] then
    return {'KEY_REUSED'}
  end
  return tell('REPLAYED')
end

if status ~= 'LIVE' then
  return {'NOT_LIVE', status}
end

-- At most fifteen digits: below 2^53, where Lua counts exactly.
local function integer(text)
  if type(text) == 'string' and #text <= 15 and string.match(text, '^%d+$') then
    return tonumber(text)
  end
  return nil
end
local function text(number)
  return string.format('%d', number)
end

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local member = ARGV[2] .. ':' .. ARGV[1]

local over = booking[5] == 'CANCELLED' or booking[5] == 'EXPIRED'
if booking[1] and (not over or booking[11] == 'kept') then
  local expires = integer(booking[7])
  if booking[5] == 'PENDING_PAYMENT' and expires and expires <= now then
    return {'RECLAIM', member}
  end
  return tell('ALREADY_RESERVED')
end

local product = redis.call('HMGET', KEYS[2], 'stock', 'price', 'currency', 'limit', 'held', 'window', 'endsAt')
local stock, price, currency, limit = product[1], product[2], product[3], product[4]
if not stock and not price then
  if redis.call('SISMEMBER', KEYS[6], KEYS[2]) == 1 then
    return {'DAMAGED', 'the product hash is gone'}
  end
  return {'UNKNOWN_PRODUCT'}
end

local units, unit_price, per_buyer, quantity = integer(stock), integer(price), integer(limit), integer(ARGV[5])
local held, window = integer(product[5] or '0'), integer(product[6] or '0')
local ends = product[7] and product[7] ~= '' and integer(product[7])
if not units or not unit_price or not per_buyer or not currency or not held or not window or ends == nil then
  return {'DAMAGED', 'the product hash has a field that is missing or not a number'}
end
if not quantity or quantity < 1 then
  return {'DAMAGED', 'the quantity is not a positive integer'}
end
-- The sale ends by this clock and at this moment, however late the process comes that ends it.
if ends and now >= ends then
  return {'NOT_LIVE', 'STOPPED'}
end
if quantity > per_buyer then
  return {'LIMIT_REACHED', limit}
end
if units < quantity then
  if held > 0 then
    local due = redis.call('ZRANGEBYSCORE', KEYS[8], '-inf', text(now), 'LIMIT', '0', text(RECLAIMED_MAX))
    if #due > 0 then
      return {'RECLAIM', unpack(due)}
    end
  end
  return {'SOLD_OUT'}
end

redis.call('SCARD', KEYS[4])
redis.call('SCARD', KEYS[5])
redis.call('XLEN', KEYS[7])
local state, expires = 'CONFIRMED', ''
if window > 0 then
  redis.call('ZCARD', KEYS[8])
  state, expires = 'PENDING_PAYMENT', text(now + window)
end

redis.call('HINCRBY', KEYS[2], 'stock', text(-quantity))
if booking[1] then
  redis.call('DEL', KEYS[3])
end
-- No revision in the booking or the entry: it is the first.
local entry = {'reservationId', ARGV[4], 'userId', ARGV[1], 'productId', ARGV[2],
  'quantity', ARGV[5], 'price', price, 'currency', currency, 'status', state, 'bookedAt', text(now)}
if ARGV[6] ~= '' then
  entry[#entry + 1] = 'idempotencyKey'
  entry[#entry + 1] = ARGV[6]
end
if window > 0 then
  entry[#entry + 1] = 'expiresAt'
  entry[#entry + 1] = expires
  redis.call('HINCRBY', KEYS[2], 'held', text(quantity))
  redis.call('ZADD', KEYS[8], expires, member)
end
redis.call('HSET', KEYS[3], 'eventId', ARGV[3], unpack(entry))
redis.call('SADD', KEYS[4], ARGV[1])
redis.call('SADD', KEYS[5], KEYS[3])
redis.call('XADD', KEYS[7], '*', unpack(entry))
return {'RESERVED', ARGV[4], ARGV[5], price, currency, state, text(now), expires, '1', '0'}
