-- project: writes one batch of products into the live store, only under the opening token of a sale not yet started.
--
-- Stock is written absolutely. That is safe, even when a batch is sent twice because its answer was lost, since no
-- buyer can reserve before the status is flipped, and the status cannot flip while this token is good.
--
-- KEYS  1 event:{E}:saleStatus   string
--       2 event:{E}:opening      string, TTL: renewed by every batch
--       3 event:{E}:productKeys  set      + every key that the sale will own
--       4 event:{E}:catalogue    zset     + product id, score 0: product ids in order, for paging
--       5 event:{E}:bookings     set      registered for removal
--       6 event:{E}:journal      stream   registered for removal
--       7 event:{E}:holds        zset     registered for removal
--       8 event:{E}:operations   hash     registered for removal
--       then three for each product: product:P:{E}, productmeta:P:{E}, event:{E}:product:P:winners
-- ARGV  1 opening token   2 its time to live in ms   3 the journal's consumer group   4 payment window in ms
--       5 when the sale ends by itself (ms), or ''
--       then eleven for each product:
--       id initial restocked price currency limit title description image sellerId eventId
--
-- Returns an array of strings; the first is the tag:
--   PROJECTED   the number of products written
--   TOKEN_LOST  another process opens this sale; nothing was written
--   STARTED     the status that the sale has; nothing was written

local FIXED_KEYS, KEYS_EACH, FIXED_ARGS, ARGS_EACH = 8, 3, 5, 11

local status = redis.call('GET', KEYS[1]) or 'NOT_STARTED'
if status ~= 'NOT_STARTED' then
  return {'STARTED', status}
end
if redis.call('GET', KEYS[2]) ~= ARGV[1] then
  return {'TOKEN_LOST'}
end

local count = (#KEYS - FIXED_KEYS) / KEYS_EACH
redis.call('PEXPIRE', KEYS[2], ARGV[2])
redis.call('SADD', KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8])
-- With its group from the first entry on: what no group has read could not be told from what was settled.
if redis.call('EXISTS', KEYS[6]) == 0 then
  redis.call('XGROUP', 'CREATE', KEYS[6], ARGV[3], '0', 'MKSTREAM')
end
for i = 0, count - 1 do
  local key, arg = FIXED_KEYS + i * KEYS_EACH, FIXED_ARGS + i * ARGS_EACH
  local product, meta, winners = KEYS[key + 1], KEYS[key + 2], KEYS[key + 3]
  local id, initial, restocked = ARGV[arg + 1], ARGV[arg + 2], ARGV[arg + 3]
  local price, currency, limit = ARGV[arg + 4], ARGV[arg + 5], ARGV[arg + 6]
  local stock = string.format('%d', tonumber(initial) + tonumber(restocked))
  -- Registered before it is written: a batch that is cut short leaves nothing that nobody knows of.
  redis.call('SADD', KEYS[3], product, meta, winners)
  redis.call('HSET', product,
    'stock', stock, 'price', price, 'currency', currency, 'limit', limit, 'initial', initial, 'restocked', restocked,
    'held', '0', 'window', ARGV[4], 'endsAt', ARGV[5])
  redis.call('HSET', meta,
    'productId', id, 'title', ARGV[arg + 7], 'description', ARGV[arg + 8], 'image', ARGV[arg + 9],
    'sellerId', ARGV[arg + 10], 'eventId', ARGV[arg + 11])
  redis.call('ZADD', KEYS[4], '0', id)
end
return {'PROJECTED', string.format('%d', count)}
