// The Lua scripts of live messages and codes. All keys of one recipient share a hash tag, so each is one step.

/*
 * Message hash `m:{recipient}:<id>`:
 *   whatsapp, telegram   leg: queued | sending | accepted | failed      ab   abandoned at
 *   by   the attempt that verified it
 *   snap, sealed, mac, kid   the message, its sealed code, its code's HMAC and pepper id
 *   channel, acc, exp, del, read, ver, fail, why   facts (rules.ts of lib/messages)
 *   to, cid   where the waiting API process is reached        hold   it waits for a receipt (1)
 *   lost_whatsapp, lost_telegram   why the leg failed
 *   seen   a receipt came        reach   WhatsApp is known to reach the phone (1)
 * Code hash `code:{recipient}`: id, mac, kid, exp; once used, the id alone stays, so that no older code comes back.
 */

// Makes the code of message KEYS[1] the valid one in KEYS[2]; a used code never becomes valid again, and an older
// message never replaces a newer one.
const validate = `
local function validate(now)
  local id, mac, kid, exp, ver = unpack(redis.call('HMGET', KEYS[1], 'id', 'mac', 'kid', 'exp', 'ver'))
  if ver or not mac or tonumber(exp) <= now then return end
  local current = redis.call('HGET', KEYS[2], 'id')
  if current and current > id then return end
  redis.call('HSET', KEYS[2], 'id', id, 'mac', mac, 'kid', kid, 'exp', exp)
  redis.call('PEXPIREAT', KEYS[2], exp)
end
local function accept(leg, now, exp)
  redis.call('HSET', KEYS[1], leg, 'accepted')
  if redis.call('HGET', KEYS[1], 'channel') ~= 'telegram' then
    redis.call('HSET', KEYS[1], 'channel', leg)
  end
  redis.call('HSETNX', KEYS[1], 'acc', now)
  redis.call('HSETNX', KEYS[1], 'exp', exp)
  redis.call('HDEL', KEYS[1], 'fail', 'why')
  if leg == 'telegram' then
    -- The Bot API has no receipts: Telegram's yes is the last word.
    redis.call('HSETNX', KEYS[1], 'del', now)
    redis.call('HDEL', KEYS[1], 'sealed')
  end
  validate(now)
end
`;

/** KEYS message; ARGV leg, now, keep ms, then field/value pairs. Answers won, or why not. */
export const claim = `
local leg = ARGV[1]
local state, abandoned, verified = unpack(redis.call('HMGET', KEYS[1], leg, 'ab', 'ver'))
if abandoned then return 'abandoned' end
if verified then return 'verified' end
if state and state ~= 'queued' then
  -- A job is here that still has to go on from it.
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  return state
end
redis.call('HSET', KEYS[1], leg, 'sending', unpack(ARGV, 4))
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 'won'`;

/**
 * KEYS message, code; ARGV leg, now, life ms, hold (1 or 0). Answers accepted at, expires at, whether it holds; nil
 * when a receipt has reported the failure of the leg already (a webhook can overtake the answer of its call), nothing
 * when there is no such message.
 */
export const accept = `${validate}
local id, state, seen = unpack(redis.call('HMGET', KEYS[1], 'id', ARGV[1], 'seen'))
if not id then return {} end
-- Nobody but its own caller fails a leg of Telegram's: a yes is news of a call that was given up too early.
if state == 'failed' and ARGV[1] ~= 'telegram' then return nil end
accept(ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[2]) + tonumber(ARGV[3]))
local hold = ARGV[4] == '1' and not seen and '1' or '0'
redis.call('HSET', KEYS[1], 'hold', hold)
local acc, exp = unpack(redis.call('HMGET', KEYS[1], 'acc', 'exp'))
return {acc, exp, hold}`;

/** KEYS message; ARGV leg, new state, why ('' says nothing). Changes only a leg that is being sent. */
export const settleLeg = `
if redis.call('HGET', KEYS[1], ARGV[1]) ~= 'sending' then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
if ARGV[3] ~= '' then redis.call('HSET', KEYS[1], 'lost_' .. ARGV[1], ARGV[3]) end
return 1`;

/**
 * KEYS message, code; ARGV now, reason, what becomes of the code (void, kept or valid), id, life ms. Nothing is left to
 * try. Answers 0 when it arrived or was verified all the same, 2 when a channel had taken it, else 1.
 */
export const failMessage = `${validate}
if redis.call('HEXISTS', KEYS[1], 'ver') == 1 or redis.call('HEXISTS', KEYS[1], 'del') == 1 then return 0 end
if redis.call('EXISTS', KEYS[1]) == 1 then
  redis.call('HSET', KEYS[1], 'fail', ARGV[1], 'why', ARGV[2])
  redis.call('HDEL', KEYS[1], 'hold')
end
if ARGV[3] == 'valid' and redis.call('EXISTS', KEYS[1]) == 1 then
  redis.call('HSETNX', KEYS[1], 'channel', 'telegram')
  redis.call('HSETNX', KEYS[1], 'acc', ARGV[1])
  redis.call('HSETNX', KEYS[1], 'exp', tonumber(ARGV[1]) + tonumber(ARGV[5]))
  redis.call('HDEL', KEYS[1], 'sealed')
  validate(tonumber(ARGV[1]))
end
if ARGV[3] == 'void' and redis.call('HGET', KEYS[2], 'id') == ARGV[4] then redis.call('DEL', KEYS[2]) end
return redis.call('HEXISTS', KEYS[1], 'acc') == 1 and 2 or 1`;

/**
 * KEYS message; ARGV now, keep ms. Gives the message up unless a channel has it or is being called: no channel is called
 * any more. Answers why a leg was lost when that leaves open whether it was sent, else abandoned.
 */
export const abandon = `
local w, t, lost_w, lost_t =
  unpack(redis.call('HMGET', KEYS[1], 'whatsapp', 'telegram', 'lost_whatsapp', 'lost_telegram'))
-- Whoever asks goes on with it.
redis.call('PEXPIRE', KEYS[1], ARGV[2])
if w == 'accepted' or t == 'accepted' then return 'accepted' end
if w == 'sending' or t == 'sending' then return 'sending' end
redis.call('HSET', KEYS[1], 'ab', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
if t == 'failed' and lost_t == 'telegram_outcome_unknown' then return lost_t end
if w == 'failed' and lost_w == 'outcome_unknown' then return lost_w end
return 'abandoned'`;

/**
 * KEYS message, code; ARGV status, at, now, life ms, latest end of the code, keep ms. Adds a WhatsApp receipt. Answers
 * what a follow-up needs; nil when the message is not live or the receipt says nothing new.
 */
export const receipt = `${validate}
local before, del, hold, known = unpack(redis.call('HMGET', KEYS[1], 'whatsapp', 'del', 'hold', 'reach'))
if not before then return nil end
local status, at, now, life = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
if status == 'failed' then
  if del then return nil end
  redis.call('HSET', KEYS[1], 'whatsapp', 'failed')
  redis.call('HDEL', KEYS[1], 'lost_whatsapp')
  -- Its fallback may have to wait for MySQL, and without the message nobody would know of the failure.
  redis.call('PEXPIRE', KEYS[1], ARGV[6])
elseif status == 'sent' and before == 'failed' then
  return nil
else
  -- An echo also settles a call whose answer was lost, and good news revives what a failure had ended.
  -- Its code ends before the hold of its price does, however late the news.
  if before ~= 'accepted' then accept('whatsapp', now, math.min(now + life, tonumber(ARGV[5]))) end
  if status ~= 'sent' then
    at = math.max(tonumber(at), tonumber(redis.call('HGET', KEYS[1], 'acc')))
    redis.call('HSETNX', KEYS[1], 'del', at)
    if status == 'read' then redis.call('HSETNX', KEYS[1], 'read', at) end
    redis.call('HSET', KEYS[1], 'reach', 1)
    redis.call('HDEL', KEYS[1], 'sealed')
  end
end
redis.call('HSET', KEYS[1], 'hold', 0, 'seen', 1)
local fields = redis.call('HMGET', KEYS[1],
  'snap', 'sealed', 'to', 'cid', 'telegram', 'acc', 'exp', 'ver', 'channel', 'lost_telegram')
return {before, hold or '0', known or '0', unpack(fields)}`;

/**
 * KEYS code, failures, block; ARGV now, block ms, attempts, message key prefix, keep ms, attempt, then pepper id/HMAC
 * pairs.
 * Checks a code, counts a failure, uses the code up: one step, so of any number of right answers one wins.
 */
export const verify = `
local now = tonumber(ARGV[1])
local blocked = redis.call('GET', KEYS[3])
if blocked and tonumber(blocked) > now then return {'blocked', tonumber(blocked) - now} end
local id, mac, kid, exp = unpack(redis.call('HMGET', KEYS[1], 'id', 'mac', 'kid', 'exp'))
if not mac or tonumber(exp) <= now then return {'none'} end
for i = 7, #ARGV, 2 do
  if ARGV[i] == kid and ARGV[i + 1] == mac then
    local message = ARGV[4] .. id
    redis.call('HDEL', KEYS[1], 'mac', 'kid', 'exp')
    redis.call('PEXPIRE', KEYS[1], ARGV[5])
    redis.call('DEL', KEYS[2])
    if redis.call('EXISTS', message) == 1 then
      redis.call('HSET', message, 'ver', now, 'by', ARGV[6])
      redis.call('HDEL', message, 'sealed')
    end
    return {'verified', id, unpack(redis.call('HMGET', message, 'snap', 'acc', 'exp', 'del', 'channel'))}
  end
end
local window = tonumber(ARGV[2])
while true do
  local oldest = redis.call('LINDEX', KEYS[2], -1)
  if not oldest or tonumber(oldest) > now - window then break end
  redis.call('RPOP', KEYS[2])
end
local failures = redis.call('LPUSH', KEYS[2], now)
redis.call('PEXPIRE', KEYS[2], window)
local left = tonumber(ARGV[3]) - failures
if left <= 0 then
  redis.call('SET', KEYS[3], now + window, 'PX', window)
  redis.call('DEL', KEYS[2])
  left = 0
end
return {'wrong', left}`;
