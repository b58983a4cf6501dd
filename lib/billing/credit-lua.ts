// The Lua of credit: what an account may still spend and cost, decided and held in one step. Its keys share a slot.
import { hour } from '../kernel/clock.ts';
import { exposureHours } from './rules.ts';

/*
 * KEYS[1] balance: seq, micros, granted, used, deposited (1 or 0), hour, spent, unverified, per (the shared number's grant)
 * KEYS[2] ends: open codes by the end of their hold
 * KEYS[3] held: the sum of their prices
 * KEYS[4] shared: unverified, verified (messages on the shared number before a deposit), hour, count (sends in that hour)
 * KEYS[5] free: open codes that may use a free verification, by their price
 * KEYS[6] open: what each open code holds, "<price> <cost> <hour it was sent in> <0 own number, 1 shared, 2 shared unpaid>"
 * KEYS[7] exposed: u<hour> what unverified messages cost the platform, c<hour> what was charged, u and c their sums,
 *   from (the oldest hour that is counted)
 */

const open = `
local function drop(id)
  local record = redis.call('HGET', KEYS[6], id)
  if not record then return nil end
  local price, cost, hour, shared = string.match(record, '^(%d+) (%d+) (%d+) (%d)$')
  redis.call('HDEL', KEYS[6], id)
  redis.call('ZREM', KEYS[2], id)
  redis.call('ZREM', KEYS[5], id)
  redis.call('DECRBY', KEYS[3], price)
  return tonumber(cost), hour, shared
end
local function forget(now)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now)) do drop(id) end
end
-- What could not be free if every open code succeeded, with one more code of this price that may be free (or nil).
local function needed(left, price)
  local sum = tonumber(redis.call('GET', KEYS[3]) or 0) + (price or 0)
  if left <= 0 then return sum end
  local cheapest = redis.call('ZRANGE', KEYS[5], 0, left - 1, 'WITHSCORES')
  local last = 0
  for i = 2, #cheapest, 2 do
    last = tonumber(cheapest[i])
    sum = sum - last
  end
  if price and #cheapest / 2 < left then return sum - price end
  if price and price < last then return sum + last - price end
  return sum
end
`;

const exposure = `
local function whole(number) return string.format('%.0f', number) end
-- Answers the cost of what is unverified and what was charged; nil when it has to be counted anew.
local function exposed(thisHour)
  local from, cost, charged = unpack(redis.call('HMGET', KEYS[7], 'from', 'u', 'c'))
  if not from then return nil end
  local oldest = thisHour - ${exposureHours - 1}
  if tonumber(from) >= oldest then return tonumber(cost), tonumber(charged) end
  local fields = redis.call('HGETALL', KEYS[7])
  local sums = {u = 0, c = 0}
  for i = 1, #fields, 2 do
    local kind, at = string.match(fields[i], '^([uc])(%d+)$')
    if kind and tonumber(at) < oldest then redis.call('HDEL', KEYS[7], fields[i])
    elseif kind then sums[kind] = sums[kind] + tonumber(fields[i + 1]) end
  end
  redis.call('HSET', KEYS[7], 'from', whole(oldest), 'u', whole(sums.u), 'c', whole(sums.c))
  return sums.u, sums.c
end
local function expose(kind, hour, micros)
  local from = redis.call('HGET', KEYS[7], 'from')
  if not from or tonumber(hour) < tonumber(from) then return end
  redis.call('HINCRBY', KEYS[7], kind .. hour, whole(micros))
  redis.call('HINCRBY', KEYS[7], kind, whole(micros))
end
-- How long until so much of what is exposed has left the window.
local function untilGone(now, micros)
  local hours = {}
  local fields = redis.call('HGETALL', KEYS[7])
  for i = 1, #fields, 2 do
    local at = string.match(fields[i], '^u(%d+)$')
    if at and tonumber(fields[i + 1]) > 0 then hours[#hours + 1] = {tonumber(at), tonumber(fields[i + 1])} end
  end
  table.sort(hours, function(one, other) return one[1] < other[1] end)
  for _, one in ipairs(hours) do
    micros = micros - one[2]
    if micros <= 0 then return (one[1] + ${exposureHours}) * ${hour} - now end
  end
  return ${24 * hour}
end
`;

/**
 * ARGV now, id ('' holds nothing), price, hold until, minimum balance, cap (-1: none), plan, trial paused (1 or 0),
 * shared (1 or 0), cost to the platform, most per hour on the shared number, keep ms, most exposed before a deposit,
 * most exposed after one, or so many times what was charged, ms to keep what is exposed.
 * Answers {'ok', plan, price}; {'miss', balance, shared, exposed} with 1 for what is not known here; or {an error code,
 * ms to wait, the limit}. What has its hold already is asked nothing again: the hold lasts as long as the code that may
 * still come.
 */
export const reserve = `${open}${exposure}
local now, price, cap, cost = tonumber(ARGV[1]), tonumber(ARGV[3]), tonumber(ARGV[6]), tonumber(ARGV[10])
local id, plan, shared = ARGV[2], ARGV[7], ARGV[9] == '1'
local thisHour = math.floor(now / ${hour})
local seq, micros, granted, used, deposited, hour, spent, atFirst, perVerified = unpack(redis.call('HMGET', KEYS[1],
  'seq', 'micros', 'granted', 'used', 'deposited', 'hour', 'spent', 'unverified', 'per'))
local unverified, verified, sharedHour, count =
  unpack(redis.call('HMGET', KEYS[4], 'unverified', 'verified', 'hour', 'count'))
local paid = deposited == '1'
local missing = not seq or not atFirst
local uncounted = shared and not paid and not unverified
local exposedCost, charged = nil, nil
if cost > 0 then exposedCost, charged = exposed(thisHour) end
local unexposed = cost > 0 and not exposedCost
if missing or uncounted or unexposed then
  return {'miss', missing and 1 or 0, uncounted and 1 or 0, unexposed and 1 or 0}
end
forget(now)
local record = redis.call('HGET', KEYS[6], id)
if record then
  local free = redis.call('ZSCORE', KEYS[5], id)
  if plan == 'trial' and not free then plan = 'pay_per_success' end
  redis.call('ZADD', KEYS[2], ARGV[4], id)
  for _, at in ipairs({2, 3, 5, 6}) do redis.call('PEXPIRE', KEYS[at], ARGV[12]) end
  return {'ok', plan, string.match(record, '^(%d+)')}
end
local left = plan == 'trial' and tonumber(granted) - tonumber(used) or 0
local mayBeFree = left > 0 and ARGV[8] == '0'
local covered = redis.call('ZCARD', KEYS[5]) < left
if plan == 'trial' and not paid and not (mayBeFree and covered) then
  if tonumber(granted) == 0 then return {'DEPOSIT_REQUIRED'} end
  return {covered and 'FREE_TRIAL_PAUSED' or 'FREE_TRIAL_EXHAUSTED'}
end
if plan == 'trial' and not mayBeFree then plan = 'pay_per_success' end
if not (mayBeFree and covered) then
  if not paid then return {'DEPOSIT_REQUIRED'} end
  local balance = tonumber(micros)
  local needs = mayBeFree and needed(left, price) or needed(left, nil) + price
  if balance < tonumber(ARGV[5]) or balance < needs then return {'INSUFFICIENT_CREDITS'} end
  local inHour = tonumber(hour) == thisHour and tonumber(spent) or 0
  if cap >= 0 and inHour + needs > cap then return {'SPEND_CAP_EXCEEDED'} end
end
local sent = tonumber(sharedHour or -1) == thisHour and tonumber(count) or 0
if shared then
  local allowance = tonumber(atFirst) + tonumber(perVerified) * tonumber(verified or 0)
  if not paid and tonumber(unverified) >= allowance then return {'CENTRAL_WHATSAPP_CONNECT_REQUIRED'} end
  if sent >= tonumber(ARGV[11]) then return {'CENTRAL_WHATSAPP_LIMIT'} end
end
if cost > 0 then
  local most = tonumber(ARGV[13])
  if paid then most = math.max(tonumber(ARGV[14]), tonumber(ARGV[15]) * charged) end
  local over = exposedCost + cost - most
  if over > 0 then return {'RATE_LIMIT_EXCEEDED', whole(untilGone(now, over)), whole(most)} end
end
if shared then
  redis.call('HSET', KEYS[4], 'hour', thisHour, 'count', sent + 1)
  if not paid then redis.call('HINCRBY', KEYS[4], 'unverified', 1) end
  -- What was counted in this hour is not forgotten before the hour is.
  if redis.call('PTTL', KEYS[4]) < ${hour} then redis.call('PEXPIRE', KEYS[4], ${hour}) end
end
if cost > 0 then
  expose('u', whole(thisHour), cost)
  redis.call('PEXPIRE', KEYS[7], ARGV[16])
end
if id ~= '' then
  local place = shared and (paid and '1' or '2') or '0'
  local parts = {whole(price), whole(cost), whole(thisHour), place}
  redis.call('HSET', KEYS[6], id, table.concat(parts, ' '))
  redis.call('ZADD', KEYS[2], ARGV[4], id)
  redis.call('INCRBY', KEYS[3], whole(price))
  if mayBeFree then redis.call('ZADD', KEYS[5], whole(price), id) end
  for _, at in ipairs({2, 3, 5, 6}) do redis.call('PEXPIRE', KEYS[at], ARGV[12]) end
end
return {'ok', plan, whole(price)}`;

/** ARGV id, hold until, keep ms. Gives a hold that stands another end. */
export const keep = `
if not redis.call('ZSCORE', KEYS[2], ARGV[1]) then return 0 end
redis.call('ZADD', KEYS[2], ARGV[2], ARGV[1])
for _, at in ipairs({2, 3, 5, 6}) do redis.call('PEXPIRE', KEYS[at], ARGV[3]) end
return 1`;

/**
 * ARGV now, free verifications that are left. Answers what open codes may still cost (micro-USD), how many of them may
 * use a free verification, unverified and verified messages on the shared number ('' when not known here), sends on it in
 * this hour, what is exposed and charged ('' when not known here), and the oldest hour with something exposed ('').
 */
export const look = `${open}${exposure}
local now = tonumber(ARGV[1])
local thisHour = math.floor(now / ${hour})
forget(now)
local unverified, verified, hour, count =
  unpack(redis.call('HMGET', KEYS[4], 'unverified', 'verified', 'hour', 'count'))
local sent = tonumber(hour or -1) == thisHour and count or 0
local cost, charged = exposed(thisHour)
local oldest = ''
local fields = cost and cost > 0 and redis.call('HGETALL', KEYS[7]) or {}
for i = 1, #fields, 2 do
  local at = string.match(fields[i], '^u(%d+)$')
  if at and tonumber(fields[i + 1]) > 0 and (oldest == '' or tonumber(at) < oldest) then oldest = tonumber(at) end
end
return {whole(needed(tonumber(ARGV[2]), nil)), redis.call('ZCARD', KEYS[5]), unverified or '', verified or '0', sent,
  cost and whole(cost) or '', charged and whole(charged) or '', oldest ~= '' and whole(oldest) or ''}`;

/**
 * ARGV id, unsent (1 or 0). Takes a reservation back: the message failed for good, so it costs nobody anything; `unsent`:
 * no channel took it, so it is no send of the hour on the shared number either.
 */
export const release = `${open}${exposure}
local cost, hour, shared = drop(ARGV[1])
if not cost then return 0 end
if cost > 0 then expose('u', hour, -cost) end
if shared == '2' and redis.call('HEXISTS', KEYS[4], 'unverified') == 1 then
  redis.call('HINCRBY', KEYS[4], 'unverified', -1)
end
if shared ~= '0' and ARGV[2] == '1' and redis.call('HGET', KEYS[4], 'hour') == hour then
  redis.call('HINCRBY', KEYS[4], 'count', -1)
end
return 1`;

/**
 * ARGV seq, micros, granted, used, deposited, hour, spent, unverified, per (the grant), keep ms, messages on the shared
 * number that are unverified ('' leaves them) and verified, ms to keep those, this hour, ms to keep what is exposed,
 * 1 to set what is exposed or 0, how many entries follow, the entries (u or c, hour, micro-USD), then the ids of codes
 * that were charged.
 * Notes a balance unless a newer one is known. Entries are what was charged just now, or, where it is to be set, all that
 * is exposed and was charged, unless somebody has set it. What is charged holds nothing and is unverified no more.
 */
export const note = `${open}${exposure}
local known = redis.call('HMGET', KEYS[1], 'seq', 'unverified')
if not known[1] or not known[2] or tonumber(known[1]) <= tonumber(ARGV[1]) then
  redis.call('HSET', KEYS[1], 'seq', ARGV[1], 'micros', ARGV[2], 'granted', ARGV[3], 'used', ARGV[4],
    'deposited', ARGV[5], 'hour', ARGV[6], 'spent', ARGV[7], 'unverified', ARGV[8], 'per', ARGV[9])
  redis.call('PEXPIRE', KEYS[1], ARGV[10])
end
if ARGV[11] ~= '' and redis.call('HSETNX', KEYS[4], 'unverified', ARGV[11]) == 1 then
  redis.call('HSET', KEYS[4], 'verified', ARGV[12])
  redis.call('PEXPIRE', KEYS[4], ARGV[13])
end
local entries, at = tonumber(ARGV[17]), 18
local counts = ARGV[16] == '0'
if not counts and redis.call('HSETNX', KEYS[7], 'from', whole(tonumber(ARGV[14]) - ${exposureHours - 1})) == 1 then
  redis.call('HSET', KEYS[7], 'u', 0, 'c', 0)
  redis.call('PEXPIRE', KEYS[7], ARGV[15])
  counts = true
end
for entry = 1, entries do
  if counts then expose(ARGV[at], ARGV[at + 1], ARGV[at + 2]) end
  at = at + 3
end
for i = at, #ARGV do
  local cost, hour, shared = drop(ARGV[i])
  if cost and cost > 0 then expose('u', hour, -cost) end
  if shared == '2' and redis.call('HEXISTS', KEYS[4], 'unverified') == 1 then
    redis.call('HINCRBY', KEYS[4], 'unverified', -1)
    redis.call('HINCRBY', KEYS[4], 'verified', 1)
  end
end
return 1`;
