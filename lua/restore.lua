-- restore: brings a batch of durable orders back into a live store that has lost them, and takes their units.
--
-- Only where nobody can buy: in a sale that is being rebuilt under its opening token, or in one that is paused and held.
-- An order that the live store knows, in this revision or a newer one, changes nothing, so a batch can be sent again. A
-- buyer may have had one reservation cancelled and made another since: the newer one is the booking.
--
-- KEYS  1 event:{E}:saleStatus  string
--       2 event:{E}:opening     string
--       3 event:{E}:bookings    set      + booking keys
--       then three for each order: product:P:{E}, booking:U:P:{E}, event:{E}:product:P:winners
-- ARGV  1 the status that the sale must have   2 the opening token that must be good, or ''   3 its time to live in ms
--       then eleven for each order:
--       reservationId userId productId eventId quantity price currency status bookedAt revision idempotencyKey
--
-- Returns an array of strings; the first is the tag:
--   RESTORED    how many were written, how many were known, how many find no unit (more units are ordered than exist),
--               how many are of a product that the sale does not have
--   REFUSED     the status that the sale has; nothing was changed
--   TOKEN_LOST  the token is not good any more; nothing was changed

local FIXED_KEYS, KEYS_EACH, FIXED_ARGS, ARGS_EACH = 3, 3, 3, 11

local status = redis.call('GET', KEYS[1]) or 'NOT_STARTED'
if status ~= ARGV[1] then
  return {'REFUSED', status}
end
local rebuilding = ARGV[2] ~= ''
if rebuilding and redis.call('GET', KEYS[2]) ~= ARGV[2] then
  return {'TOKEN_LOST'}
end
if rebuilding then
  redis.call('PEXPIRE', KEYS[2], ARGV[3])
end

local function held(order_status, quantity)
  if order_status == 'CONFIRMED' or order_status == 'PENDING_PAYMENT' then
    return tonumber(quantity)
  end
  return 0
end

local restored, known, short, strange = 0, 0, 0, 0
for i = 0, (#KEYS - FIXED_KEYS) / KEYS_EACH - 1 do
  local key, arg = FIXED_KEYS + i * KEYS_EACH, FIXED_ARGS + i * ARGS_EACH
  local product, booking, winners = KEYS[key + 1], KEYS[key + 2], KEYS[key + 3]
  local id, user, quantity, order_status = ARGV[arg + 1], ARGV[arg + 2], ARGV[arg + 5], ARGV[arg + 8]
  local booked_at, revision, idempotency_key = ARGV[arg + 9], ARGV[arg + 10], ARGV[arg + 11]

  local has = redis.call('HMGET', booking, 'reservationId', 'revision', 'quantity', 'status', 'bookedAt')
  if rebuilding and redis.call('SISMEMBER', KEYS[3], booking) == 0 then
    -- Left from before the sale was lost: the stock that was projected anew knows nothing of it.
    has = {}
  end
  local same = has[1] == id and tonumber(has[2] or '1') >= tonumber(revision)
  local superseded = has[1] and has[1] ~= id and tonumber(has[5]) > tonumber(booked_at)
  local stock = tonumber(redis.call('HGET', product, 'stock') or 'none')
  local units = held(order_status, quantity) - (has[1] and held(has[4], has[3]) or 0)
  if same or superseded then
    known = known + 1
  elseif not stock then
    strange = strange + 1
  elseif units > stock then
    short = short + 1
  else
    redis.call('HINCRBY', product, 'stock', string.format('%d', -units))
    redis.call('DEL', booking)
    redis.call('HSET', booking,
      'reservationId', id, 'userId', user, 'productId', ARGV[arg + 3], 'eventId', ARGV[arg + 4],
      'quantity', quantity, 'price', ARGV[arg + 6], 'currency', ARGV[arg + 7], 'status', order_status,
      'bookedAt', booked_at, 'revision', revision)
    if idempotency_key ~= '' then
      redis.call('HSET', booking, 'idempotencyKey', idempotency_key)
    end
    redis.call('SADD', KEYS[3], booking)
    if held(order_status, quantity) > 0 then
      redis.call('SADD', winners, user)
    else
      redis.call('SREM', winners, user)
    end
    restored = restored + 1
  end
end
local function text(number)
  return string.format('%d', number)
end
return {'RESTORED', text(restored), text(known), text(short), text(strange)}
