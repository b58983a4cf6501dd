// Idempotency records in Redis: who works on a key, with which message, and the answer once there is one.
import { randomBytes } from 'node:crypto';
import type { RedisClient } from '../infra/redis.ts';
import { defineScript, serverClockLua } from '../infra/redis-script.ts';
import { day, second } from '../kernel/clock.ts';
import { idempotencyKeyHash, type KeyScope } from './rules.ts';

/** After this long the owner of a key is presumed dead, and the key may be taken over. */
const lockFor = (requestMs: number): number => Math.max(30 * second, 2 * requestMs);
/** How long an answer is remembered, counted from completion (spec section 8). */
export const keepMs = day;

/** The answer of a request that had an effect; small, because it is kept for a day. */
export type StoredAnswer = { status: number; data: unknown; requestId: string };

/** Proof of owning a record; plain data. `keyHash` (hex) is also the key of the second line in MySQL. */
export type IdempotencyToken = { keyHash: string; owner: string };

export type BeginRequest = KeyScope & { fingerprint: string; messageId: string };

export type Beginning =
  /** Nobody used the key: go on with the given message id. */
  | { kind: 'new'; messageId: string; token: IdempotencyToken }
  /** Its owner fell silent: go on with the id recorded then, which may have been sent already. */
  | { kind: 'takeover'; messageId: string; token: IdempotencyToken }
  | { kind: 'replay'; answer: StoredAnswer }
  | { kind: 'in_progress' }
  | { kind: 'mismatch' };

/** The writes answer false, and change nothing, when the record is no longer the caller's. All throw RedisUnavailable. */
export type Idempotency = {
  /** Claims a key for longer than any call takes, or says why not; a different fingerprint is a mismatch whatever the state. */
  begin(request: BeginRequest): Promise<Beginning>;
  /** Keeps the answer for 24 h from now. */
  complete(token: IdempotencyToken, answer: StoredAnswer): Promise<boolean>;
  /** Forgets the key: nothing was sent, the same key starts afresh. */
  release(token: IdempotencyToken): Promise<boolean>;
  /** Gives up the lock and keeps the message id: the outcome is not known yet, the next request looks again. */
  unlock(token: IdempotencyToken): Promise<boolean>;
  /** Replaces the recorded message id, when a takeover has to start a new message. */
  renewMessageId(token: IdempotencyToken, messageId: string): Promise<boolean>;
};

// One string, because a hash with a member over 64 bytes costs half as much again. Unfinished: u, fingerprint (22
// characters), owner (16), locked until (ms), a blank, message id. Finished: f, fingerprint, answer.
const nobody = '-'.repeat(16);

const beginLua = `${serverClockLua}
local key, fingerprint, message, owner = KEYS[1], ARGV[2], ARGV[3], ARGV[4]
local record = redis.call('GET', key)
if record then
  if string.sub(record, 2, 23) ~= fingerprint then return { 'mismatch' } end
  if string.sub(record, 1, 1) == 'f' then return { 'replay', string.sub(record, 24) } end
  local locked, recorded = string.match(record, '^(%d+) (.*)$', 40)
  if tonumber(locked) > now then return { 'in_progress' } end
  message = recorded
end
local claim = 'u' .. fingerprint .. owner .. text(now + tonumber(ARGV[5])) .. ' ' .. message
redis.call('SET', key, claim, 'PX', ${keepMs})
return { record and 'takeover' or 'new', message }
`;

const settleLua = `
local key, owner, step, value = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local record = redis.call('GET', key)
if not record or string.sub(record, 1, 1) ~= 'u' then return 0 end
if string.sub(record, 24, 39) ~= owner then return 0 end
local fingerprint, rest = string.sub(record, 2, 23), string.sub(record, 40)
if step == 'release' then
  redis.call('DEL', key)
  return 1
end
local settled
if step == 'complete' then
  settled = 'f' .. fingerprint .. value
elseif step == 'unlock' then
  settled = 'u' .. fingerprint .. '${nobody}' .. string.gsub(rest, '^%d+', '0')
else
  settled = 'u' .. fingerprint .. owner .. string.match(rest, '^%d+ ') .. value
end
redis.call('SET', key, settled, 'PX', ${keepMs})
return 1
`;

// 128 bits of a hash tell records apart as well as 256 and cost a third of the memory of hex.
const short = (hex: string): string => Buffer.from(hex.slice(0, 32), 'hex').toString('base64url');

const packAnswer = ({ status, requestId, data }: StoredAnswer): string =>
  JSON.stringify([status, requestId, data]);

const unpackAnswer = (text: string): StoredAnswer => {
  const [status, requestId, data] = JSON.parse(text) as [number, string, unknown];
  return { status, requestId, data };
};

export type IdempotencyDeps = {
  redis: RedisClient;
  /** In front of every key. */
  prefix: string;
  /** The longest a request takes. */
  requestMs?: number;
  /** A test's clock in ms; by default the time of the Redis server decides. */
  nowMs?: () => number;
};

/** The idempotency records under `prefix` (see `Idempotency`). */
export const createIdempotency = (deps: IdempotencyDeps): Idempotency => {
  const { redis, prefix, nowMs, requestMs = 0 } = deps;
  const lockMs = lockFor(requestMs);
  const beginScript = defineScript<[kind: string, detail: string]>(redis, {
    name: 'tesseraIdempotencyBegin',
    lua: beginLua,
    keys: 1,
  });
  const settleScript = defineScript<number>(redis, {
    name: 'tesseraIdempotencySettle',
    lua: settleLua,
    keys: 1,
  });
  const recordKey = (keyHash: string): string => `${prefix}idem:${short(keyHash)}`;

  const begin = async (request: BeginRequest): Promise<Beginning> => {
    const token = {
      keyHash: idempotencyKeyHash(request),
      owner: randomBytes(12).toString('base64url'),
    };
    const now = nowMs === undefined ? '' : nowMs();
    const args = [now, short(request.fingerprint), request.messageId, token.owner, lockMs];
    const [kind, detail] = await beginScript([recordKey(token.keyHash)], args);
    if (kind === 'new' || kind === 'takeover') return { kind, messageId: detail, token };
    if (kind === 'replay') return { kind, answer: unpackAnswer(detail) };
    return { kind: kind === 'mismatch' ? 'mismatch' : 'in_progress' };
  };

  const settle = async (token: IdempotencyToken, step: string, value = ''): Promise<boolean> =>
    (await settleScript([recordKey(token.keyHash)], [token.owner, step, value])) === 1;

  return {
    begin,
    complete: (token, answer) => settle(token, 'complete', packAnswer(answer)),
    release: (token) => settle(token, 'release'),
    unlock: (token) => settle(token, 'unlock'),
    renewMessageId: (token, messageId) => settle(token, 'renew', messageId),
  };
};
