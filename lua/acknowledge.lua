-- acknowledge: strikes journal entries that MongoDB has confirmed, and trims what every consumer has had confirmed.
--
-- An entry may go when it was delivered and is not pending any more. The oldest pending entry is the border; with
-- nothing pending it is the last delivered one. Both are read here, in the step that trims: an entry that is delivered
-- later is newer than the border. Trimming is bounded and approximate (whole nodes of the stream): what stays a little
-- longer goes with a later batch, or with the journal.
--
-- KEYS  1 event:{E}:journal  stream
-- ARGV  1 consumer group   2 the most entries to trim   3... ids of confirmed entries
--
-- Returns an array of strings; the first is the tag:
--   ACKNOWLEDGED  how many entries were pending until now, how many were trimmed
--   NO_GROUP      the journal has no such group; nothing was changed

if redis.call('EXISTS', KEYS[1]) == 0 then
  return {'ACKNOWLEDGED', '0', '0'}
end

local delivered = nil
for _, group in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  local fields = {}
  for i = 1, #group, 2 do
    fields[group[i]] = group[i + 1]
  end
  if fields['name'] == ARGV[1] then
    delivered = fields['last-delivered-id']
  end
end
if not delivered then
  return {'NO_GROUP'}
end

local confirmed = 0
for i = 3, #ARGV do
  confirmed = confirmed + redis.call('XACK', KEYS[1], ARGV[1], ARGV[i])
end
local pending = redis.call('XPENDING', KEYS[1], ARGV[1])
local border = delivered
if pending[1] > 0 then
  border = pending[2]
end
local trimmed = redis.call('XTRIM', KEYS[1], 'MINID', '~', border, 'LIMIT', ARGV[2])
return {'ACKNOWLEDGED', string.format('%d', confirmed), string.format('%d', trimmed)}
