// The Lua scripts of the pumping guard. All keys of one account share a hash tag, so a batch of it is one step.

/*
 * Per account and scope (a block of numbers, a country), sorted sets of message ids: o (open, by the time a channel took
 * them), u and v (unconverted, verified, by the time they settled), t and r (delivers that the account checks itself:
 * all, and those with a receipt, by the time they were sent). A message is in one of o, u and v, however often and in
 * whatever order its events come. Hash hold: the last hold.
 *
 * Per account: sorted set reports (its newest verified delivers); ok and no (its newest verified and unconverted codes:
 * its standing); d (its newest delivers that it checks itself); source (the names of where it was made from).
 */

/** The fields of a hold, in the order in which they are read. `spent` is the sixth (see `record`). */
export const holdFields = [
  ...(['level', 'since', 'until', 'settled', 'verified', 'spent'] as const),
  ...(['reason', 'early', 'accounts', 'settledTogether', 'verifiedTogether'] as const),
] as const;
const fields = holdFields.map((field) => `'${field}'`).join(', ');

/**
 * KEYS reports, ok, no, d, source, then o, u, v, t, r, hold of each scope. ARGV: now, windowMs, reportsMs, standingMs,
 * graceMs, openMs, reports wanted, verified and unconverted codes of a good standing, most members of a set; then per
 * message: number of its block and of its country among the scopes from 1, deliver (1 or 0), sign, arrived (1 or 0), id,
 * at, sent at. Times are written by the caller: newer servers would print a large number of Lua's as 1.7e+12.
 * Answers reports (1 or 0), good (1 or 0), all delivers, source; then for each scope settled, verified, old open, young
 * open, delivers known, arrived and all, and the fields of the hold; then 1 or 0 for each message: whether it is a
 * settled code that says something about its country.
 */
export const record = `
local now, windowMs, reportsMs, standingMs = tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local graceMs, openMs = tonumber(ARGV[5]), tonumber(ARGV[6])
local wanted, goodFrom, goodTo, most = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])
local reportsKey, okKey, noKey, deliversKey, sourceKey = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local first, perScope, perMessage = 6, 6, 8

local function text(ms) return string.format('%.0f', ms) end
local windowStart = text(now - tonumber(windowMs))

local function eachMessage(visit)
  for i = 11, #ARGV, perMessage do
    visit({
      scopes = {first + perScope * (tonumber(ARGV[i]) - 1), first + perScope * (tonumber(ARGV[i + 1]) - 1)},
      deliver = ARGV[i + 2] == '1', sign = ARGV[i + 3], arrived = ARGV[i + 4] == '1',
      id = ARGV[i + 5], at = ARGV[i + 6], sent = ARGV[i + 7],
    })
  end
end

local function keep(key, score, id, ms, limit)
  redis.call('ZADD', key, score, id)
  redis.call('ZREMRANGEBYRANK', key, 0, -limit - 1)
  redis.call('PEXPIRE', key, ms)
end

local delivers = false
eachMessage(function(message)
  delivers = delivers or message.deliver
  if message.deliver and message.sign == 'verified' then
    keep(reportsKey, message.at, message.id, reportsMs, wanted)
  end
end)
local reports = false
if delivers then
  local oldest = redis.call('ZRANGE', reportsKey, 0, 0, 'WITHSCORES')[2]
  reports = redis.call('ZCARD', reportsKey) == wanted and tonumber(oldest) > now - tonumber(reportsMs)
end

local holds = {}
for key = first, #KEYS, perScope do
  holds[key] = redis.call('HMGET', KEYS[key + 5], ${fields})
end

local function takeCode(key, message)
  local open, unconverted, verified = KEYS[key], KEYS[key + 1], KEYS[key + 2]
  local sign, id = message.sign, message.id
  if sign == 'failed' then
    redis.call('ZREM', open, id)
  elseif sign == 'verified' then
    redis.call('ZREM', open, id)
    redis.call('ZREM', unconverted, id)
    keep(verified, message.at, id, windowMs, most)
  elseif redis.call('ZSCORE', verified, id) then
    return
  elseif sign == 'expired' then
    redis.call('ZREM', open, id)
    keep(unconverted, message.at, id, windowMs, most)
  elseif sign == 'sent' and not redis.call('ZSCORE', unconverted, id) then
    keep(open, message.sent, id, openMs, most)
  end
end

local function takeDeliver(key, message)
  if message.sign == 'failed' then
    redis.call('ZREM', KEYS[key + 3], message.id)
    return
  end
  keep(KEYS[key + 3], message.sent, message.id, windowMs, most)
  if message.arrived or message.sign == 'verified' then
    keep(KEYS[key + 4], message.sent, message.id, windowMs, most)
  end
end

local counted = {}
eachMessage(function(message)
  local sign, code = message.sign, not message.deliver or reports
  local settled = sign == 'verified' or sign == 'expired'
  counted[#counted + 1] = code and settled and 1 or 0
  if sign == 'verified' then
    redis.call('ZREM', noKey, message.id)
    keep(okKey, message.at, message.id, standingMs, goodFrom)
  elseif code and sign == 'expired' and not redis.call('ZSCORE', okKey, message.id) then
    keep(noKey, message.at, message.id, standingMs, goodTo + 1)
  end
  if not code and sign ~= 'failed' then keep(deliversKey, message.sent, message.id, windowMs, most) end
  for number, key in ipairs(message.scopes) do
    if tonumber(message.sent) >= tonumber(holds[key][6] or 0) then
      if code then
        takeCode(key, message)
      elseif number == 1 then
        takeDeliver(key, message)
      end
    end
  end
end)

local good = 0
local newest = redis.call('ZRANGE', okKey, 0, 0, 'WITHSCORES')[2]
if newest and redis.call('ZCARD', okKey) == goodFrom and tonumber(newest) > now - tonumber(standingMs) then
  good = redis.call('ZCOUNT', noKey, newest, '+inf') <= goodTo and 1 or 0
end
local all = redis.call('ZCARD', deliversKey)
if all > 0 then
  redis.call('ZREMRANGEBYSCORE', deliversKey, '-inf', windowStart)
  all = redis.call('ZCARD', deliversKey)
end

local reply = {reports and 1 or 0, good, all, redis.call('GET', sourceKey) or ''}
local graceStart = text(now - graceMs)
local function size(key, start)
  local count = redis.call('ZCARD', key)
  if count > 0 then count = count - redis.call('ZREMRANGEBYSCORE', key, '-inf', start) end
  return count
end
for key = first, #KEYS, perScope do
  local open = size(KEYS[key], text(now - openMs))
  local u, v = size(KEYS[key + 1], windowStart), size(KEYS[key + 2], windowStart)
  local old = open > 0 and redis.call('ZCOUNT', KEYS[key], '-inf', graceStart) or 0
  local here, arrived = size(KEYS[key + 3], windowStart), size(KEYS[key + 4], windowStart)
  local known = 0
  if here > 0 then
    known = redis.call('ZCOUNT', KEYS[key + 3], '-inf', graceStart)
      + redis.call('ZCOUNT', KEYS[key + 4], '(' .. graceStart, '+inf')
  end
  for _, cell in ipairs({u + v, v, old, open - old, known, arrived, here}) do reply[#reply + 1] = cell end
  for field = 1, ${holdFields.length} do reply[#reply + 1] = holds[key][field] end
end
for _, one in ipairs(counted) do reply[#reply + 1] = one end
return reply`;

/**
 * KEYS group; ARGV now, windowMs, ms to keep it, most members, field, share ('' takes it out), then field and share of
 * what stays beside it. A share is JSON with at (ms) and w (its weight). Answers all shares that are left: those of the
 * window, the heaviest when there are too many.
 */
export const group = `
local key, now, most = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[4])
for i = 5, #ARGV, 2 do
  if ARGV[i + 1] == '' then redis.call('HDEL', key, ARGV[i]) else redis.call('HSET', key, ARGV[i], ARGV[i + 1]) end
end
redis.call('PEXPIRE', key, ARGV[3])
local all, left = redis.call('HGETALL', key), {}
for i = 1, #all, 2 do
  local share = cjson.decode(all[i + 1])
  if share.at <= now - tonumber(ARGV[2]) then
    redis.call('HDEL', key, all[i])
  else
    left[#left + 1] = {all[i], all[i + 1], share.w}
  end
end
if #left > most then
  table.sort(left, function(one, other)
    if one[3] ~= other[3] then return one[3] > other[3] end
    return one[1] < other[1]
  end)
  for i = #left, most + 1, -1 do
    redis.call('HDEL', key, left[i][1])
    left[i] = nil
  end
end
local reply = {}
for i, share in ipairs(left) do reply[i] = share[2] end
return reply`;

/**
 * KEYS hold, o, u, v, t, r; ARGV end of the hold before ('' for none), ms to keep it, spends (1 or 0), field/value pairs.
 * Begins a hold unless somebody else has; its evidence is spent with it, unless it rests on open codes.
 */
export const hold = `
if (redis.call('HGET', KEYS[1], 'until') or '') ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
if ARGV[3] == '1' then redis.call('DEL', KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]) end
redis.call('HSET', KEYS[1], unpack(ARGV, 4))
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1`;

/**
 * KEYS held; ARGV field, value (JSON with until), a fresh epoch, now, ms to keep the set, most holds. Adds a hold for
 * every API process to see, and drops those that are over, and those that end first when there are too many. Saying the
 * same again changes nothing.
 */
export const publish = `
if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2] then return 0 end
local all, left = redis.call('HGETALL', KEYS[1]), {}
for i = 1, #all, 2 do
  local ends = all[i] ~= 'epoch' and cjson.decode(all[i + 1])['until']
  if ends and ends <= tonumber(ARGV[4]) then
    redis.call('HDEL', KEYS[1], all[i])
  elseif ends then
    left[#left + 1] = {all[i], ends}
  end
end
if #left >= tonumber(ARGV[6]) then
  table.sort(left, function(one, other)
    if one[2] ~= other[2] then return one[2] < other[2] end
    return one[1] < other[1]
  end)
  for i = 1, #left - tonumber(ARGV[6]) + 1 do redis.call('HDEL', KEYS[1], left[i][1]) end
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2], 'epoch', ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[5])
return 1`;
