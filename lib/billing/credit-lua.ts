// The Lua of credit: what an account may still spend, decided and held in one step. Keys of an account share a slot.

/*
 * KEYS[1] balance: seq, micros, granted, used, deposited (1 or 0), hour, spent
 * KEYS[2] holds: open codes by the end of their hold; a member is "<id>:<micro-USD>"
 * KEYS[3] held: the sum of the holds
 * KEYS[4] shared: total (sends on the shared number), hour, count
 * KEYS[5] free: open codes that would use up a free verification, by the end of their hold; a member is "<id>"
 */

const forget = `
local function forget(now)
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now)) do
    redis.call('ZREM', KEYS[2], member)
    redis.call('DECRBY', KEYS[3], string.match(member, ':(%d+)$'))
  end
  redis.call('ZREMRANGEBYSCORE', KEYS[5], '-inf', now)
end
local function drop(member)
  local id, price = string.match(member, '^(.*):(%d+)$')
  if redis.call('ZREM', KEYS[5], id) == 1 then return 1 end
  if redis.call('ZREM', KEYS[2], member) == 0 then return 0 end
  redis.call('DECRBY', KEYS[3], price)
  return 1
end
`;

/**
 * ARGV now, id ('' holds nothing), price, hold until, minimum balance, cap (-1: none), plan, trial paused (1 or 0),
 * shared (1 or 0), allowance of the trial, most per hour on the shared number, keep ms.
 * Answers {'ok', plan}, {'miss'} when the balance is not known here, or {an error code, micro-USD at stake}.
 */
export const reserve = `${forget}
local now, price, cap = tonumber(ARGV[1]), tonumber(ARGV[3]), tonumber(ARGV[6])
local seq, micros, granted, used, deposited, hour, spent =
  unpack(redis.call('HMGET', KEYS[1], 'seq', 'micros', 'granted', 'used', 'deposited', 'hour', 'spent'))
local total, sharedHour, count = unpack(redis.call('HMGET', KEYS[4], 'total', 'hour', 'count'))
if not seq or (ARGV[9] == '1' and not total) then return {'miss'} end
forget(now)
local plan, paid = ARGV[7], deposited == '1'
if plan == 'trial' then
  -- An open code may become a success, so it takes its place among the free ones; asked again, it has one already.
  local open = redis.call('ZCARD', KEYS[5])
  if redis.call('ZSCORE', KEYS[5], ARGV[2]) then open = open - 1 end
  local free = tonumber(used) + open < tonumber(granted)
  if free and ARGV[8] == '0' then
    price = 0
  elseif paid then
    plan = 'pay_per_success'
  elseif tonumber(granted) == 0 then
    return {'DEPOSIT_REQUIRED'}
  else
    return {free and 'FREE_TRIAL_PAUSED' or 'FREE_TRIAL_EXHAUSTED'}
  end
end
if plan ~= 'trial' then
  if not paid then return {'DEPOSIT_REQUIRED'} end
  local held = tonumber(redis.call('GET', KEYS[3]) or 0)
  local balance = tonumber(micros)
  if balance < tonumber(ARGV[5]) or balance - held < price then return {'INSUFFICIENT_CREDITS'} end
  local inHour = tonumber(hour) == math.floor(now / 3600000) and tonumber(spent) or 0
  if cap >= 0 and inHour + held + price > cap then return {'SPEND_CAP_EXCEEDED'} end
end
if ARGV[9] == '1' then
  local thisHour = math.floor(now / 3600000)
  local sent = tonumber(sharedHour or -1) == thisHour and tonumber(count) or 0
  if not paid and tonumber(total) >= tonumber(ARGV[10]) then return {'CENTRAL_WHATSAPP_CONNECT_REQUIRED'} end
  if sent >= tonumber(ARGV[11]) then return {'CENTRAL_WHATSAPP_LIMIT'} end
  redis.call('HSET', KEYS[4], 'total', tonumber(total) + 1, 'hour', thisHour, 'count', sent + 1)
  -- What was counted in this hour is not forgotten before the hour is.
  if redis.call('PTTL', KEYS[4]) < 3600000 then redis.call('PEXPIRE', KEYS[4], 3600000) end
end
if ARGV[2] ~= '' and plan == 'trial' then
  redis.call('ZADD', KEYS[5], ARGV[4], ARGV[2])
  redis.call('PEXPIRE', KEYS[5], ARGV[12])
elseif ARGV[2] ~= '' then
  local member = ARGV[2] .. ':' .. string.format('%.0f', price)
  -- Asked again for the same message, the hold lasts as long as the code that may still come.
  if redis.call('ZADD', KEYS[2], ARGV[4], member) == 1 then redis.call('INCRBY', KEYS[3], price) end
  redis.call('PEXPIRE', KEYS[2], ARGV[12])
  redis.call('PEXPIRE', KEYS[3], ARGV[12])
end
return {'ok', plan, price}`;

/** ARGV member, hold until, keep ms. Gives a hold that stands another end. */
export const keep = `
local id = string.match(ARGV[1], '^(.*):%d+$')
for i, member in pairs({[2] = ARGV[1], [5] = id}) do
  if redis.call('ZSCORE', KEYS[i], member) then
    redis.call('ZADD', KEYS[i], ARGV[2], member)
    redis.call('PEXPIRE', KEYS[i], ARGV[3])
    if i == 2 then redis.call('PEXPIRE', KEYS[3], ARGV[3]) end
  end
end
return 1`;

/**
 * ARGV now. What open codes hold: micro-USD, and free verifications; then the sends on the shared number, in all ('' when
 * not known here) and in this hour.
 */
export const look = `${forget}
local now = tonumber(ARGV[1])
forget(now)
local total, hour, count = unpack(redis.call('HMGET', KEYS[4], 'total', 'hour', 'count'))
local sent = tonumber(hour or -1) == math.floor(now / 3600000) and count or 0
return {redis.call('GET', KEYS[3]) or 0, redis.call('ZCARD', KEYS[5]), total or '', sent}`;

/** ARGV member, shared (1 or 0). Takes a reservation back: nothing was sent. */
export const release = `${forget}
if drop(ARGV[1]) == 1 and ARGV[2] == '1' and redis.call('EXISTS', KEYS[4]) == 1 then
  redis.call('HINCRBY', KEYS[4], 'total', -1)
  redis.call('HINCRBY', KEYS[4], 'count', -1)
end
return 1`;

/**
 * ARGV seq, micros, granted, used, deposited, hour, spent, total ('' leaves it), keep ms, keep shared ms, members.
 * Notes a balance unless a newer one is known, and drops holds that are settled.
 */
export const note = `${forget}
local known = redis.call('HGET', KEYS[1], 'seq')
if not known or tonumber(known) <= tonumber(ARGV[1]) then
  redis.call('HSET', KEYS[1], 'seq', ARGV[1], 'micros', ARGV[2], 'granted', ARGV[3], 'used', ARGV[4],
    'deposited', ARGV[5], 'hour', ARGV[6], 'spent', ARGV[7])
  redis.call('PEXPIRE', KEYS[1], ARGV[9])
end
if ARGV[8] ~= '' and redis.call('HSETNX', KEYS[4], 'total', ARGV[8]) == 1 then
  redis.call('PEXPIRE', KEYS[4], ARGV[10])
end
for i = 11, #ARGV do drop(ARGV[i]) end
return 1`;
