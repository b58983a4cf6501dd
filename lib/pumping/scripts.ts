// The Lua scripts of the pumping guard. All keys of one account share a hash tag, so a batch of it is one step.

/*
 * Per account and prefix, two sorted sets of message ids by the time they settled (unconverted, verified): a message
 * is in one of them, however often and in whatever order its events come. Hash hold: level, since, until, settled,
 * verified of the last hold. Per account, sorted set reports: its newest verified delivers.
 */

/**
 * KEYS reports, then unconverted, verified, hold of each prefix. ARGV start of the window, its ms, start of the period
 * of reports, its ms, how many make an account report, how many make a prefix worth a look; then per message: number
 * of its prefix from 1, deliver (1 or 0), verified (1 or 0), id, at, sent at. Times are written by the caller: newer
 * servers would print a large number of Lua's as 1.7e+12.
 * Answers unconverted, verified and the five fields of the hold for each prefix, then 1 or 0 for each message:
 * whether it says anything about its country.
 */
export const record = `
local windowStart, windowMs, reportsStart, reportsMs = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local wanted, minimum = tonumber(ARGV[5]), tonumber(ARGV[6])
local prefixes = (#KEYS - 1) / 3

local function eachMessage(visit)
  for i = 7, #ARGV, 6 do
    visit(3 * tonumber(ARGV[i]) - 1, ARGV[i + 1] == '1', ARGV[i + 2] == '1', ARGV[i + 3], ARGV[i + 4], tonumber(ARGV[i + 5]))
  end
end

local delivers = false
eachMessage(function(_, deliver, verified, id, at)
  delivers = delivers or deliver
  if deliver and verified then
    redis.call('ZADD', KEYS[1], at, id)
    redis.call('PEXPIRE', KEYS[1], reportsMs)
  end
end)
local reports = false
if delivers then
  redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -wanted - 1)
  local oldest = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]
  reports = redis.call('ZCARD', KEYS[1]) == wanted and tonumber(oldest) > tonumber(reportsStart)
end

local holds = {}
for prefix = 1, prefixes do
  holds[3 * prefix - 1] = redis.call('HMGET', KEYS[3 * prefix + 1], 'level', 'since', 'until', 'settled', 'verified')
end

local counted = {}
eachMessage(function(key, deliver, verified, id, at, sentAt)
  local counts = not deliver or reports
  counted[#counted + 1] = counts and 1 or 0
  if not counts or sentAt < tonumber(holds[key][3] or 0) then return end
  local target = verified and KEYS[key + 1] or KEYS[key]
  if verified then
    redis.call('ZREM', KEYS[key], id)
  elseif redis.call('ZSCORE', KEYS[key + 1], id) then
    return
  end
  redis.call('ZADD', target, at, id)
  redis.call('PEXPIRE', target, windowMs)
end)

local reply = {}
for key = 2, #KEYS, 3 do
  local u, v = redis.call('ZCARD', KEYS[key]), redis.call('ZCARD', KEYS[key + 1])
  if u + v >= minimum then
    u = u - redis.call('ZREMRANGEBYSCORE', KEYS[key], '-inf', windowStart)
    v = v - redis.call('ZREMRANGEBYSCORE', KEYS[key + 1], '-inf', windowStart)
  end
  reply[#reply + 1] = u
  reply[#reply + 1] = v
  for field = 1, 5 do reply[#reply + 1] = holds[key][field] end
end
for _, one in ipairs(counted) do reply[#reply + 1] = one end
return reply`;

/**
 * KEYS hold, unconverted, verified; ARGV end of the hold before ('' for none), ms to keep it, field/value pairs. Begins
 * a hold unless somebody else has; its evidence is spent with it.
 */
export const hold = `
if (redis.call('HGET', KEYS[1], 'until') or '') ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1], KEYS[2], KEYS[3])
redis.call('HSET', KEYS[1], unpack(ARGV, 3))
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1`;

/**
 * KEYS held; ARGV field, value (JSON with until), a fresh epoch, now, ms to keep the set. Adds a hold for every API
 * process to see, and drops those that are over. Saying the same again changes nothing.
 */
export const publish = `
if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2] then return 0 end
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  if all[i] ~= 'epoch' and cjson.decode(all[i + 1])['until'] <= tonumber(ARGV[4]) then
    redis.call('HDEL', KEYS[1], all[i])
  end
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2], 'epoch', ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[5])
return 1`;
