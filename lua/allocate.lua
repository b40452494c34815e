-- allocate: takes the soonest-expiring voucher units out of their pools for the items of an order, all of them or none.
--
-- The client's reserved pools are drawn from first, then the general ones. Within each of the two, the unit that expires
-- first goes first, whichever vendor's pool it is in; of two that expire together, the one that was imported first.
-- A unit that is taken is a claim until the database has confirmed whose it is. An item that has a claim keeps it, so
-- asking again after a lost answer takes nothing twice.
--
-- KEYS  1 inventory:{P}:claims  hash  + item: 'member score milliseconds R|G'
--       then the reserved pools, then the general ones (zsets, each - member)
-- ARGV  1 how many of the pools are reserved
--       2 the lowest score, seconds: what expires before is not taken
--       3.. the items, at most ITEMS_MAX
-- TIME  Redis TIME, milliseconds.
--
-- Returns an array of strings; the first is the tag:
--   CLAIMED  for each item: member, score, 'R' if it came from a reserved pool or else 'G'
--   SHORT    how many of the items could have had a unit; nothing was changed
--   DAMAGED  an argument or a claim cannot be read, and which; nothing was changed

local ITEMS_MAX = 500

local reserved, lowest = tonumber(ARGV[1]), ARGV[2]
local items = #ARGV - 2
if not reserved or not string.match(lowest or '', '^%d+$') or items < 1 or items > ITEMS_MAX then
  return {'DAMAGED', 'an allocation has 1 to ' .. ITEMS_MAX .. ' items'}
end
local time = redis.call('TIME')
local now = string.format('%.0f', tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))

local answer, open = {}, {}
for i = 1, items do
  local claim = redis.call('HGET', KEYS[1], ARGV[2 + i])
  if claim then
    local member, score, phase = string.match(claim, '^(%S+) (%d+) %d+ ([RG])$')
    if not member then
      return {'DAMAGED', 'the claim of ' .. ARGV[2 + i]}
    end
    answer[i * 3 - 2], answer[i * 3 - 1], answer[i * 3] = member, score, phase
  else
    open[#open + 1] = i
  end
end

-- The first of several pools, in one order.
local function soonest(first, last, count)
  local found = {}
  for pool = first, last do
    local range = redis.call('ZRANGEBYSCORE', KEYS[pool], lowest, '+inf', 'WITHSCORES', 'LIMIT', 0, count)
    for i = 1, #range, 2 do
      found[#found + 1] = {member = range[i], score = tonumber(range[i + 1]), pool = pool}
    end
  end
  table.sort(found, function(a, b)
    if a.score ~= b.score then
      return a.score < b.score
    end
    return a.member < b.member
  end)
  return found
end

local taken = {}
if #open > 0 then
  for i, unit in ipairs(soonest(2, 1 + reserved, #open)) do
    if i <= #open then
      unit.phase = 'R'
      taken[i] = unit
    end
  end
end
if #taken < #open then
  local general, before = soonest(2 + reserved, #KEYS, #open - #taken), #taken
  for i = 1, math.min(#general, #open - before) do
    general[i].phase = 'G'
    taken[before + i] = general[i]
  end
end
if #taken < #open then
  return {'SHORT', string.format('%d', #taken + items - #open)}
end

for i, unit in ipairs(taken) do
  local item, score = open[i], string.format('%.0f', unit.score)
  -- The claim first: under memory pressure (noeviction) it is refused, and nothing has left its pool.
  redis.call('HSET', KEYS[1], ARGV[2 + item], unit.member .. ' ' .. score .. ' ' .. now .. ' ' .. unit.phase)
  redis.call('ZREM', KEYS[unit.pool], unit.member)
  answer[item * 3 - 2], answer[item * 3 - 1], answer[item * 3] = unit.member, score, unit.phase
end
return {'CLAIMED', unpack(answer)}
