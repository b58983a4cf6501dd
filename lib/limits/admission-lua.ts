// The admission script: looks at every limit of a call, decides, and only then writes; in parts, so that it can grow.
import { serverClockLua } from '../infra/redis-script.ts';
import { exactUpTo } from './rules.ts';

/** Buckets a ring keeps; 59 of them span the window, so that the one being left is still counted whole. */
const ringBuckets = 60;

// A log is a list of stamps, newest first. Stale ones leave at the tail when something is admitted, never on a look.
const log = `
local function younger(key, length, edge)
  local young, stale, step, oldest = -1, length, 1, false
  local at = length - 1
  while young < stale - 1 do
    local stamp = tonumber(redis.call('LINDEX', key, at))
    if stamp > edge then young, oldest = at, stamp else stale, step = at, step * 2 end
    if young < 0 then at = math.max(stale - step, 0) else at = math.floor((young + stale) / 2) end
  end
  return stale, oldest
end
local function lookLog(rule)
  local last = redis.call('LINDEX', rule.key, rule.limit - 1)
  if last then return last + rule.window - now end
  return 0
end
local function countLog(rule)
  local length = redis.call('LLEN', rule.key)
  local used, oldest = younger(rule.key, length, now - rule.window)
  return used, oldest and oldest + rule.window - now or 0, length
end
local function pushLog(rule)
  local length = redis.call('LPUSH', rule.key, text(now))
  if rule.reported then
    local used, reset = countLog(rule)
    if used < length then redis.call('LTRIM', rule.key, 0, used - 1) end
    rule.used, rule.reset = used, reset
  elseif length > rule.limit then
    redis.call('LTRIM', rule.key, 0, rule.limit - 1)
  end
  redis.call('PEXPIRE', rule.key, rule.window)
end
`;

// A ring is a hash: a count per bucket (field = bucket number), k = bucket of the last admission, t = total at that
// time, o = oldest bucket with a count. As long as k is the current bucket, t and o hold without adding up.
const ring = `
local function sumRing(rule)
  local fields = redis.call('HGETALL', rule.key)
  rule.total, rule.oldest, rule.counts, rule.left = 0, rule.slot, {}, {}
  for i = 1, #fields, 2 do
    local slot, count = tonumber(fields[i]), tonumber(fields[i + 1])
    if slot and slot > rule.slot - ${ringBuckets} then
      rule.counts[slot] = count
      rule.total = rule.total + count
      if slot < rule.oldest then rule.oldest = slot end
    elseif slot then
      rule.left[#rule.left + 1] = fields[i]
    end
  end
end
local function loadRing(rule)
  rule.width = math.ceil(rule.window / ${ringBuckets - 1})
  rule.slot = math.floor(now / rule.width)
  local seen = redis.call('HMGET', rule.key, 'k', 't', 'o', text(rule.slot))
  local last = tonumber(seen[1])
  if last and last >= rule.slot then
    if last > rule.slot then seen[4] = redis.call('HGET', rule.key, text(last)) end
    rule.slot, rule.total, rule.oldest, rule.here = last, tonumber(seen[2]), tonumber(seen[3]), tonumber(seen[4])
  elseif last then
    sumRing(rule)
    rule.here = 0
  else
    rule.total, rule.oldest, rule.here = 0, rule.slot, 0
  end
end
local function resetRing(rule, bucket) return (bucket + ${ringBuckets}) * rule.width - now end
local function lookRing(rule)
  loadRing(rule)
  if rule.total < rule.limit then return 0 end
  if not rule.counts then sumRing(rule) end
  local total = rule.total
  for slot = rule.oldest, rule.slot do
    total = total - (rule.counts[slot] or 0)
    if total < rule.limit then return resetRing(rule, slot) end
  end
end
local function countRing(rule)
  return rule.total, rule.total > 0 and resetRing(rule, rule.oldest) or 0
end
local function pushRing(rule)
  rule.total, rule.here = rule.total + 1, rule.here + 1
  if rule.left and #rule.left > 0 then redis.call('HDEL', rule.key, unpack(rule.left)) end
  redis.call('HSET', rule.key, 'k', text(rule.slot), 't', rule.total, 'o', text(rule.oldest), text(rule.slot), rule.here)
  redis.call('PEXPIRE', rule.key, ${ringBuckets} * rule.width)
  rule.used, rule.reset = countRing(rule)
end
`;

// ARGV: now or '' | '1' to take, '0' to look | how many of the last rules to report | key number, limit, window …
const look = `
local rules, wait, refused = {}, 0, 0
local count = (#ARGV - 3) / 3
for number = 1, count do
  local at = number * 3 + 1
  local rule = {
    key = KEYS[tonumber(ARGV[at])],
    limit = tonumber(ARGV[at + 1]),
    window = tonumber(ARGV[at + 2]),
    reported = number > count - tonumber(ARGV[3]),
  }
  rule.counted = rule.limit > ${exactUpTo}
  rules[number] = rule
  local needed
  if rule.counted then needed = lookRing(rule) else needed = lookLog(rule) end
  if needed > wait then wait, refused = needed, number end
end
`;

// Rules that share a key are adjacent with the longest window last: that one writes for all of them.
const take = `
local taken = refused == 0 and ARGV[2] == '1'
if taken then
  for number = 1, count do
    local rule, following = rules[number], rules[number + 1]
    if rule.counted then pushRing(rule)
    elseif not following or following.key ~= rule.key then pushLog(rule) end
  end
end
`;

// Reply: number of the refusing rule (0: none), its wait in ms, now, then used and ms to the next release per report.
const reply = `
local answer = { refused, wait, now }
for number = count - tonumber(ARGV[3]) + 1, count do
  local rule = rules[number]
  if not taken and rule.counted then rule.used, rule.reset = countRing(rule)
  elseif not taken then rule.used, rule.reset = countLog(rule) end
  answer[#answer + 1] = rule.used
  answer[#answer + 1] = rule.reset
end
return answer
`;

/** Reads all, decides, then writes all: a refused call changes nothing. Keys: one per distinct `key` of the rules. */
export const admissionLua = serverClockLua + log + ring + look + take + reply;
