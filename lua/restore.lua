-- restore: brings a batch of durable orders back into a live store that has lost them, and takes their units.
--
-- Only where nobody can buy: in a sale that is being rebuilt under its opening token, or in one that is paused and held.
-- An order that the live store knows, in this revision or a newer one, changes nothing, so a batch can be sent again. A
-- buyer may have had one reservation cancelled and made another since: the newer one is the booking.
--
-- KEYS  1 event:{E}:saleStatus  string
--       2 event:{E}:opening     string
--       3 event:{E}:bookings    set      + booking keys
--       4 event:{E}:holds       zset     'product:user' of those that wait for payment
--       then three for each order: product:P:{E}, booking:U:P:{E}, event:{E}:product:P:winners
-- ARGV  1 the status that the sale must have   2 the opening token that must be good, or ''   3 its time to live in ms
--       then fourteen for each order:
--       reservationId userId productId eventId quantity price currency status bookedAt revision idempotencyKey
--       expiresAt ('' if it does not wait for payment) returned slot
--
-- Returns an array of strings; the first is the tag:
--   RESTORED    how many were written, how many were known, how many find no unit (more units are ordered than exist),
--               how many are of a product that the sale does not have
--   REFUSED     the status that the sale has; nothing was changed
--   TOKEN_LOST  the token is not good any more; nothing was changed

local FIXED_KEYS, KEYS_EACH, FIXED_ARGS, ARGS_EACH = 4, 3, 3, 14

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

-- Units that a state of a reservation takes, and how many of them are unpaid.
local function taken(order_status, quantity, returned)
  local units = tonumber(quantity) - tonumber(returned or '0')
  return units, order_status == 'PENDING_PAYMENT' and units or 0
end

local restored, known, short, strange = 0, 0, 0, 0
for i = 0, (#KEYS - FIXED_KEYS) / KEYS_EACH - 1 do
  local key, arg = FIXED_KEYS + i * KEYS_EACH, FIXED_ARGS + i * ARGS_EACH
  local product, booking, winners = KEYS[key + 1], KEYS[key + 2], KEYS[key + 3]
  local id, user, quantity, order_status = ARGV[arg + 1], ARGV[arg + 2], ARGV[arg + 5], ARGV[arg + 8]
  local booked_at, revision, idempotency_key = ARGV[arg + 9], ARGV[arg + 10], ARGV[arg + 11]
  local expires_at, returned, slot = ARGV[arg + 12], ARGV[arg + 13], ARGV[arg + 14]
  local member = ARGV[arg + 3] .. ':' .. user

  local has = redis.call('HMGET', booking, 'reservationId', 'revision', 'quantity', 'status', 'bookedAt', 'returned')
  if rebuilding and redis.call('SISMEMBER', KEYS[3], booking) == 0 then
    -- Left from before the sale was lost: the stock that was projected anew knows nothing of it.
    has = {}
  end
  local same = has[1] == id and tonumber(has[2] or '1') >= tonumber(revision)
  local superseded = has[1] and has[1] ~= id and tonumber(has[5]) > tonumber(booked_at)
  local stock = tonumber(redis.call('HGET', product, 'stock') or 'none')
  local after, unpaid_after = taken(order_status, quantity, returned)
  local before, unpaid_before = 0, 0
  if has[1] then
    before, unpaid_before = taken(has[4], has[3], has[6])
  end
  local units = after - before
  if same or superseded then
    known = known + 1
  elseif not stock then
    strange = strange + 1
  elseif units > stock then
    short = short + 1
  else
    redis.call('HINCRBY', product, 'stock', string.format('%d', -units))
    redis.call('HINCRBY', product, 'held', string.format('%d', unpaid_after - unpaid_before))
    redis.call('DEL', booking)
    redis.call('HSET', booking,
      'reservationId', id, 'userId', user, 'productId', ARGV[arg + 3], 'eventId', ARGV[arg + 4],
      'quantity', quantity, 'price', ARGV[arg + 6], 'currency', ARGV[arg + 7], 'status', order_status,
      'bookedAt', booked_at, 'revision', revision, 'returned', returned)
    if idempotency_key ~= '' then
      redis.call('HSET', booking, 'idempotencyKey', idempotency_key)
    end
    if slot ~= '' then
      redis.call('HSET', booking, 'slot', slot)
    end
    if order_status == 'PENDING_PAYMENT' then
      redis.call('HSET', booking, 'expiresAt', expires_at)
      redis.call('ZADD', KEYS[4], expires_at, member)
    else
      redis.call('ZREM', KEYS[4], member)
    end
    redis.call('SADD', KEYS[3], booking)
    if after > 0 or slot ~= '' then
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
