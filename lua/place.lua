-- place: puts voucher units where the database says they belong: into one pool, or into none.
--
-- Every change of a unit in the database counts its revision up, and the unit's metadata remembers the revision that was
-- placed last. So placements may come twice and in any order: an older one changes nothing, the same one mends what is
-- missing, and a unit is never in two pools. A claimed unit stays out of its pool as long as nothing about it has changed.
--
-- KEYS  1 inventory:{P}:claims  hash  - the claims that are struck
--       2 inventory:{P}:pools   set   + pools that have had a unit
--       then two for each unit: inventory:{P}:inv-<id> (hash: its metadata), and its pool (zset), or key 2 if it has none
--       The pool that a unit was in before is named in its metadata and has the same slot.
-- ARGV  1 milliseconds for which the metadata of a unit without a pool is kept
--       then eight for each unit:
--       member   revision   score: the second at which it expires
--       '1' if it belongs in the pool, '0' if in none
--       an item whose claim on this unit is settled, or ''
--       vendor   denomination   client, or '' (for the metadata)
--
-- Returns an array of strings; the first is the tag:
--   PLACED  for each unit
--           MOVED  it was not where it belongs, and is now
--           SAME   it was there
--           STALE  a newer revision was placed before; nothing was changed
--           CLAIMED  an order is about to get it; nothing was changed
--   DAMAGED  an argument cannot be read, and which; nothing was changed

local FIXED_KEYS, KEYS_EACH, ARGS_EACH = 2, 2, 8

local function integer(text)
  if type(text) == 'string' and #text <= 15 and string.match(text, '^%d+$') then
    return tonumber(text)
  end
  return nil
end

local units = (#KEYS - FIXED_KEYS) / KEYS_EACH
redis.call('SCARD', KEYS[2])
for i = 0, units - 1 do
  redis.call('HLEN', KEYS[FIXED_KEYS + i * KEYS_EACH + 1])
  if ARGV[2 + i * ARGS_EACH + 3] == '1' then
    redis.call('ZCARD', KEYS[FIXED_KEYS + i * KEYS_EACH + 2])
  end
  if not integer(ARGV[2 + i * ARGS_EACH + 1]) or not integer(ARGV[2 + i * ARGS_EACH + 2]) then
    return {'DAMAGED', 'the revision or the expiry of ' .. ARGV[2 + i * ARGS_EACH]}
  end
end
local claimed = {}
for _, claim in ipairs(redis.call('HVALS', KEYS[1])) do
  claimed[string.match(claim, '^%S+') or ''] = true
end

local answer = {}
for i = 0, units - 1 do
  local key, arg = FIXED_KEYS + i * KEYS_EACH, 1 + i * ARGS_EACH
  local meta, pool = KEYS[key + 1], KEYS[key + 2]
  local member, revision, score = ARGV[arg + 1], integer(ARGV[arg + 2]), ARGV[arg + 3]
  local belongs, item = ARGV[arg + 4] == '1', ARGV[arg + 5]

  if item ~= '' then
    local claim = redis.call('HGET', KEYS[1], item)
    if claim and string.match(claim, '^%S+') == member then
      redis.call('HDEL', KEYS[1], item)
      claimed[member] = nil
    end
  end
  local known = redis.call('HMGET', meta, 'revision', 'pool')
  local placed, before = integer(known[1]), known[2] or ''
  local outcome = 'SAME'
  if placed and revision < placed then
    outcome = 'STALE'
  elseif belongs and claimed[member] and revision == placed then
    outcome = 'CLAIMED'
  else
    local moved = before ~= '' and (not belongs or before ~= pool) and redis.call('ZREM', before, member) == 1
    if belongs then
      if redis.call('ZSCORE', pool, member) ~= score then
        redis.call('ZADD', pool, score, member)
        moved = true
      end
      if before ~= pool or placed ~= revision then
        redis.call('SADD', KEYS[2], pool)
        redis.call('HSET', meta, 'revision', ARGV[arg + 2], 'pool', pool, 'vendor', ARGV[arg + 6],
          'denomination', ARGV[arg + 7], 'expiry', score, 'client', ARGV[arg + 8])
        redis.call('PERSIST', meta)
      end
    else
      redis.call('HSET', meta, 'revision', ARGV[arg + 2], 'pool', '')
      redis.call('PEXPIRE', meta, ARGV[1])
    end
    if moved then
      outcome = 'MOVED'
    end
  end
  answer[#answer + 1] = outcome
end
return {'PLACED', unpack(answer)}
