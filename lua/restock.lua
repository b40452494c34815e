-- restock: adds units to a product of a running sale, or withdraws units that nobody has; once for each operation id.
--
-- KEYS  1 event:{E}:saleStatus   string
--       2 product:P:{E}          hash    stock, initial, restocked
--       3 event:{E}:operations   hash    + operation id
--       4 event:{E}:productKeys  set     read: tells an unknown product from an evicted one
-- ARGV  1 operation id   2 units to add, negative to withdraw   3 the most units that a product may have
--
-- Returns an array of strings; the first is the tag:
--   RESTOCKED        stock restocked: what the product has now
--   BEFORE           the same: this operation was done before; nothing was changed
--   SHORT            stock restocked: fewer units are unsold than are to be withdrawn; nothing was changed
--   FULL             stock restocked: the product would have more units than it may; nothing was changed
--   UNKNOWN_PRODUCT  the sale has no such product
--   NOT_RUNNING      the status that the sale has; nothing was changed
--   DAMAGED          what is wrong; nothing was changed

local status = redis.call('GET', KEYS[1]) or 'NOT_STARTED'
if status ~= 'LIVE' and status ~= 'PAUSED' then
  return {'NOT_RUNNING', status}
end

local function integer(text)
  if type(text) == 'string' and #text <= 16 and string.match(text, '^%-?%d+$') then
    return tonumber(text)
  end
  return nil
end

local product = redis.call('HMGET', KEYS[2], 'stock', 'initial', 'restocked')
if not product[1] and not product[2] then
  if redis.call('SISMEMBER', KEYS[4], KEYS[2]) == 1 then
    return {'DAMAGED', 'the product hash is gone'}
  end
  return {'UNKNOWN_PRODUCT'}
end
local stock, initial, restocked = integer(product[1]), integer(product[2]), integer(product[3])
local units, most = integer(ARGV[2]), integer(ARGV[3])
if not stock or not initial or not restocked then
  return {'DAMAGED', 'the product hash has a field that is missing or not a number'}
end
if not units or units == 0 or not most then
  return {'DAMAGED', 'the units are not an integer, or none'}
end

local function text(number)
  return string.format('%d', number)
end
local function tell(tag)
  return {tag, text(stock), text(restocked)}
end
if redis.call('HEXISTS', KEYS[3], ARGV[1]) == 1 then
  return tell('BEFORE')
end
if stock + units < 0 then
  return tell('SHORT')
end
if initial + restocked + units > most then
  return tell('FULL')
end
stock = redis.call('HINCRBY', KEYS[2], 'stock', text(units))
restocked = redis.call('HINCRBY', KEYS[2], 'restocked', text(units))
redis.call('HSET', KEYS[3], ARGV[1], ARGV[2])
return tell('RESTOCKED')
