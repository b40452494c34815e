-- confirm: a payment has arrived for a reservation.
--
-- The hold is decided by its state and not by the clock: as long as nobody has released it, its units are there, and the
-- payment keeps them even when it comes late. After that the units are taken again if there are enough. What the buyer
-- has cancelled stays cancelled.
--
-- That units are gone is said once and for all: the money goes back because of it. A process that stalled with the same
-- payment in hand, and comes when units are there again, must not give them to somebody who has been refunded.
--
-- KEYS  1 event:{E}:saleStatus         string
--       2 product:P:{E}                hash    stock, held
--       3 booking:U:P:{E}              hash    written here; refused: units were gone when its payment came
--       4 event:{E}:product:P:winners  set     + user
--       5 event:{E}:journal            stream  + one entry
--       6 event:{E}:holds              zset    - 'product:user'
-- ARGV  1 reservation id   2 user id   3 product id   4 units that were paid for
--
-- Returns an array of strings; the first is the tag:
--   CONFIRMED    reservationId quantity price currency status bookedAt expiresAt revision returned
--   RETAKEN      the same: the payment came after the hold had expired, and there were units
--   BEFORE       the same: it was confirmed already; nothing was changed
--   NO_STOCK     the same: the payment came after the hold had expired, and its units are gone, or were when it was asked before;
--                nothing was changed but that this is remembered
--   CANCELLED    the same: the reservation was cancelled; nothing was changed
--   UNKNOWN      the buyer has no such reservation, or another one since; nothing was changed
--   NOT_RUNNING  the status that the sale has; nothing was changed
--   DAMAGED      what is wrong; nothing was changed

local status = redis.call('GET', KEYS[1]) or 'NOT_STARTED'
if status ~= 'LIVE' and status ~= 'PAUSED' then
  return {'NOT_RUNNING', status}
end

local booking = redis.call('HMGET', KEYS[3],
  'reservationId', 'quantity', 'price', 'currency', 'status', 'bookedAt', 'expiresAt', 'revision', 'returned',
  'idempotencyKey', 'refused')
if booking[1] ~= ARGV[1] then
  return {'UNKNOWN'}
end

local function integer(text)
  if type(text) == 'string' and #text <= 15 and string.match(text, '^%d+$') then
    return tonumber(text)
  end
  return nil
end
local function text(number)
  return string.format('%d', number)
end
local function tell(tag)
  return {tag, booking[1], booking[2] or '', booking[3] or '', booking[4] or '', booking[5] or '', booking[6] or '',
    booking[7] or '', booking[8] or '1', booking[9] or '0'}
end

if booking[5] == 'CONFIRMED' then
  return tell('BEFORE')
end
if booking[5] == 'CANCELLED' then
  return tell('CANCELLED')
end

local quantity, revision, returned = integer(booking[2]), integer(booking[8] or '1'), integer(booking[9] or '0')
local paid, stock = integer(ARGV[4]), integer(redis.call('HGET', KEYS[2], 'stock'))
if not quantity or not revision or not returned or not stock then
  return {'DAMAGED', 'the booking or the product hash has a field that is missing or not a number'}
end
if not paid or paid < 1 or paid > quantity then
  return {'DAMAGED', 'the units paid for are not of this reservation'}
end
redis.call('SCARD', KEYS[4])
redis.call('XLEN', KEYS[5])
redis.call('ZCARD', KEYS[6])

local tag
if booking[5] == 'PENDING_PAYMENT' then
  tag = 'CONFIRMED'
  redis.call('HINCRBY', KEYS[2], 'held', text(returned - quantity))
elseif booking[5] == 'EXPIRED' then
  if booking[11] or stock < paid then
    redis.call('HSET', KEYS[3], 'refused', '1')
    return tell('NO_STOCK')
  end
  tag = 'RETAKEN'
  returned = quantity - paid
  redis.call('HINCRBY', KEYS[2], 'stock', text(-paid))
  redis.call('SADD', KEYS[4], ARGV[2])
else
  return {'DAMAGED', 'the booking has a status that nobody knows'}
end

booking[5], booking[7], booking[8], booking[9] = 'CONFIRMED', '', text(revision + 1), text(returned)
redis.call('HSET', KEYS[3], 'status', booking[5], 'revision', booking[8], 'returned', booking[9])
redis.call('HDEL', KEYS[3], 'expiresAt', 'slot')
redis.call('ZREM', KEYS[6], ARGV[3] .. ':' .. ARGV[2])
local entry = {'reservationId', booking[1], 'userId', ARGV[2], 'productId', ARGV[3],
  'quantity', booking[2], 'price', booking[3], 'currency', booking[4], 'status', booking[5], 'bookedAt', booking[6],
  'revision', booking[8], 'returned', booking[9]}
if booking[10] then
  entry[#entry + 1] = 'idempotencyKey'
  entry[#entry + 1] = booking[10]
end
redis.call('XADD', KEYS[5], '*', unpack(entry))
return tell(tag)
