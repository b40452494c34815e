-- reserve: decides one reservation, in one atomic step.
--
-- Everything is read and checked first; the first write can only happen when nothing is left that could fail, because
-- Redis does not roll back a script that fails half-way. The reads of SCARD and XLEN are there to raise WRONGTYPE
-- before the first write. HINCRBY comes first among the writes: under memory pressure (noeviction) it is refused, and
-- with it everything.
--
-- A caller that waits for replicas (WAIT) asks for a write whenever the answer tells of a reservation. WAIT covers only
-- what its own connection wrote, and an earlier reservation was written over another one, perhaps to a replica that never
-- got it. So a field of the booking is set to what it is: replication keeps the order of writes, so a replica that
-- acknowledges this one has the reservation, too.
--
-- KEYS  1 event:{E}:saleStatus         string
--       2 product:P:{E}                hash    stock, price, currency, limit
--       3 booking:U:P:{E}              hash    written here
--       4 event:{E}:product:P:winners  set     + user
--       5 event:{E}:bookings           set     + KEYS[3]
--       6 event:{E}:productKeys        set     read: tells an unknown product from an evicted one
--       7 event:{E}:journal            stream  + one entry
-- ARGV  1 user id   2 product id   3 event id   4 reservation id (new)   5 quantity (integer text)
--       6 idempotency key, or ''   7 '1' if the caller waits for replicas
-- TIME  Redis TIME, milliseconds.
--
-- Returns an array of strings; the first is the tag:
--   RESERVED          reservationId quantity price currency status bookedAt
--   REPLAYED          the same, of the earlier reservation made with this idempotency key and quantity
--   ALREADY_RESERVED  the same, of the reservation that the buyer has
--   SOLD_OUT          too few units
--   NOT_LIVE          the status that the sale has
--   UNKNOWN_PRODUCT   the sale has no such product
--   LIMIT_REACHED     units that one buyer may have
--   DAMAGED           what is wrong; nothing was changed

local status = redis.call('GET', KEYS[1]) or 'NOT_STARTED'

local booking = redis.call('HMGET', KEYS[3],
  'reservationId', 'quantity', 'price', 'currency', 'status', 'bookedAt', 'idempotencyKey')

local function write_again_for_replicas()
  if ARGV[7] == '1' then
    redis.call('HSET', KEYS[3], 'reservationId', booking[1])
  end
end

if booking[1] and ARGV[6] ~= '' and booking[7] == ARGV[6] and booking[2] == ARGV[5] then
  write_again_for_replicas()
  return {'REPLAYED', booking[1], booking[2] or '', booking[3] or '', booking[4] or '', booking[5] or '', booking[6] or ''}
end

if status ~= 'LIVE' then
  return {'NOT_LIVE', status}
end
if booking[1] then
  write_again_for_replicas()
  return {'ALREADY_RESERVED', booking[1], booking[2] or '', booking[3] or '', booking[4] or '', booking[5] or '', booking[6] or ''}
end

local product = redis.call('HMGET', KEYS[2], 'stock', 'price', 'currency', 'limit')
local stock, price, currency, limit = product[1], product[2], product[3], product[4]
if not stock and not price then
  if redis.call('SISMEMBER', KEYS[6], KEYS[2]) == 1 then
    return {'DAMAGED', 'the product hash is gone'}
  end
  return {'UNKNOWN_PRODUCT'}
end

-- At most fifteen digits: below 2^53, where Lua counts exactly.
local function integer(text)
  if type(text) == 'string' and #text <= 15 and string.match(text, '^%d+$') then
    return tonumber(text)
  end
  return nil
end

local units, unit_price, per_buyer, quantity = integer(stock), integer(price), integer(limit), integer(ARGV[5])
if not units or not unit_price or not per_buyer or not currency then
  return {'DAMAGED', 'the product hash has a field that is missing or not a number'}
end
if not quantity or quantity < 1 then
  return {'DAMAGED', 'the quantity is not a positive integer'}
end
if quantity > per_buyer then
  return {'LIMIT_REACHED', limit}
end
if units < quantity then
  return {'SOLD_OUT'}
end

redis.call('SCARD', KEYS[4])
redis.call('SCARD', KEYS[5])
redis.call('XLEN', KEYS[7])
local time = redis.call('TIME')
local now = string.format('%d', tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))

redis.call('HINCRBY', KEYS[2], 'stock', string.format('%d', -quantity))
redis.call('HSET', KEYS[3],
  'reservationId', ARGV[4], 'userId', ARGV[1], 'productId', ARGV[2], 'eventId', ARGV[3],
  'quantity', ARGV[5], 'price', price, 'currency', currency, 'status', 'CONFIRMED', 'bookedAt', now)
if ARGV[6] ~= '' then
  redis.call('HSET', KEYS[3], 'idempotencyKey', ARGV[6])
end
redis.call('SADD', KEYS[4], ARGV[1])
redis.call('SADD', KEYS[5], KEYS[3])
-- No revision in the booking or the entry: it is the first.
local entry = {'reservationId', ARGV[4], 'userId', ARGV[1], 'productId', ARGV[2],
  'quantity', ARGV[5], 'price', price, 'currency', currency, 'status', 'CONFIRMED', 'bookedAt', now}
if ARGV[6] ~= '' then
  entry[#entry + 1] = 'idempotencyKey'
  entry[#entry + 1] = ARGV[6]
end
redis.call('XADD', KEYS[7], '*', unpack(entry))
return {'RESERVED', ARGV[4], ARGV[5], price, currency, 'CONFIRMED', now}
