-- release: returns the units of reservations to stock, each exactly once. Cancelling, refunding and expiring all go
-- through here, so that they cannot return a unit twice between them, in whatever order they come.
--
-- Each reservation is checked whole and then written; HINCRBY comes first among its writes, so that under memory pressure
-- (noeviction) it is refused with everything behind it, and is released when there is memory again.
--
-- KEYS  1 event:{E}:saleStatus  string
--       2 event:{E}:holds       zset    - 'product:user'
--       3 event:{E}:journal     stream  + one entry for each that is released
--       4 event:{E}:operations  hash    + operation id
--       then three for each reservation: product:P:{E}, booking:U:P:{E}, event:{E}:product:P:winners
-- ARGV  eight for each reservation:
--       reservation id, or '' for the one that the buyer has   user id   product id
--       CANCELLED or EXPIRED: the status when no unit is left
--       units to return, or '' for all
--       '1' only if it is a hold whose time has passed
--       'kept' if the buyer may not reserve this product again; only of a confirmed reservation
--       operation id, or '': what was done under it is not done again
-- TIME  Redis TIME, milliseconds.
--
-- Returns an array of strings; the first is the tag:
--   DONE         for each reservation an outcome and nine fields: reservationId quantity price currency status bookedAt
--                expiresAt revision returned. The outcome is
--                RELEASED  it is released, or a part of it
--                BEFORE    it was released before, or this operation was done; nothing was changed
--                NOT_DUE   it is no hold whose time has passed; nothing was changed
--                TOO_MANY  it has fewer units than are to be returned; nothing was changed
--                UNKNOWN   the buyer has no such reservation, or another one since; nothing was changed
--                DAMAGED   a field is missing or not a number; nothing was changed
--   NOT_RUNNING  the status that the sale has; nothing was changed

local FIXED_KEYS, KEYS_EACH, ARGS_EACH = 4, 3, 8

local status = redis.call('GET', KEYS[1]) or 'NOT_STARTED'
if status ~= 'LIVE' and status ~= 'PAUSED' then
  return {'NOT_RUNNING', status}
end
redis.call('ZCARD', KEYS[2])
redis.call('XLEN', KEYS[3])
redis.call('HLEN', KEYS[4])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

local function integer(text)
  if type(text) == 'string' and #text <= 15 and string.match(text, '^%d+$') then
    return tonumber(text)
  end
  return nil
end
local function text(number)
  return string.format('%d', number)
end

local answer = {}
for i = 0, (#KEYS - FIXED_KEYS) / KEYS_EACH - 1 do
  local key, arg = FIXED_KEYS + i * KEYS_EACH, i * ARGS_EACH
  local product, booking, winners = KEYS[key + 1], KEYS[key + 2], KEYS[key + 3]
  local id, user, product_id, target = ARGV[arg + 1], ARGV[arg + 2], ARGV[arg + 3], ARGV[arg + 4]
  local wanted, only_due, slot, operation = ARGV[arg + 5], ARGV[arg + 6] == '1', ARGV[arg + 7], ARGV[arg + 8]
  local member = product_id .. ':' .. user

  local has = redis.call('HMGET', booking,
    'reservationId', 'quantity', 'price', 'currency', 'status', 'bookedAt', 'expiresAt', 'revision', 'returned',
    'idempotencyKey')
  local quantity, revision, returned = integer(has[2]), integer(has[8] or '1'), integer(has[9] or '0')
  local expires = integer(has[7])
  local unpaid = has[5] == 'PENDING_PAYMENT'
  local outcome
  if not has[1] or (id ~= '' and has[1] ~= id) then
    outcome = 'UNKNOWN'
  elseif operation ~= '' and redis.call('HEXISTS', KEYS[4], operation) == 1 then
    outcome = 'BEFORE'
  elseif has[5] == 'CANCELLED' or has[5] == 'EXPIRED' then
    outcome = 'BEFORE'
  elseif only_due and not (unpaid and expires and expires <= now) then
    outcome = 'NOT_DUE'
  elseif not quantity or not revision or not returned
      or not integer(redis.call('HGET', product, 'stock')) then
    outcome = 'DAMAGED'
  else
    local units = quantity - returned
    if wanted ~= '' then
      units = integer(wanted)
    end
    if not units or units < 1 or units > quantity - returned then
      outcome = 'TOO_MANY'
    else
      redis.call('SCARD', winners)
      outcome = 'RELEASED'
      redis.call('HINCRBY', product, 'stock', text(units))
      if unpaid then
        redis.call('HINCRBY', product, 'held', text(-units))
      end
      has[8], has[9] = text(revision + 1), text(returned + units)
      local whole = returned + units == quantity
      if whole then
        has[5] = target
      end
      redis.call('HSET', booking, 'status', has[5], 'revision', has[8], 'returned', has[9])
      if operation ~= '' then
        redis.call('HSET', KEYS[4], operation, has[1])
      end
      local entry = {'reservationId', has[1], 'userId', user, 'productId', product_id,
        'quantity', has[2], 'price', has[3], 'currency', has[4], 'status', has[5], 'bookedAt', has[6],
        'revision', has[8], 'returned', has[9]}
      if has[7] then
        entry[#entry + 1] = 'expiresAt'
        entry[#entry + 1] = has[7]
      end
      if has[10] then
        entry[#entry + 1] = 'idempotencyKey'
        entry[#entry + 1] = has[10]
      end
      if operation ~= '' then
        entry[#entry + 1] = 'operation'
        entry[#entry + 1] = operation
      end
      if whole then
        redis.call('ZREM', KEYS[2], member)
        if slot == 'kept' and not unpaid then
          redis.call('HSET', booking, 'slot', slot)
          entry[#entry + 1] = 'slot'
          entry[#entry + 1] = slot
        else
          redis.call('SREM', winners, user)
        end
      end
      redis.call('XADD', KEYS[3], '*', unpack(entry))
    end
  end
  if only_due and (outcome == 'UNKNOWN' or outcome == 'BEFORE' or (outcome == 'NOT_DUE' and not unpaid)) then
    -- Listed as a hold and none any more: it would be looked at for ever.
    redis.call('ZREM', KEYS[2], member)
  end
  answer[#answer + 1] = outcome
  for field = 1, 9 do
    answer[#answer + 1] = has[field] or ''
  end
end
return {'DONE', unpack(answer)}
