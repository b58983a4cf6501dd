// Live messages and codes in Redis: who may send, which code is valid, what has become known; MySQL follows.
import { holdMs } from '../billing/rules.ts';
import { defineScript, type RedisClient } from '../infra/redis.ts';
import { day, hour } from '../kernel/clock.ts';
import { idTime } from '../kernel/ids.ts';
import type { ChannelName, Facts, FailureReason, Message } from '../messages/rules.ts';
import { codeLifeSeconds } from '../messages/rules.ts';
import { blockMs, failedAttempts } from './rules.ts';
import * as scripts from './scripts.ts';

/** Where the process that waits for a send is reached. */
export type Waiter = { replyTo: string; correlationId: string };

/** What a live message shows; snapshot is the message as JSON. */
export type LiveMessage = {
  snapshot: Message | undefined;
  whatsapp: string | undefined;
  telegram: string | undefined;
  abandoned: boolean;
  sealedCode: string | undefined;
  /** Why the channel that was tried first failed. */
  lost: FailureReason | null;
  facts: Facts;
};

/** A message and the recipient it is for: where its keys are. */
export type LiveRef = { recipient: string; id: string };

export type CodeMac = { id: string; mac: string };

export type ClaimDetails = {
  message: Message;
  /** WhatsApp is known to reach the phone. */
  reachable: boolean;
  sealedCode: string;
  mac: CodeMac;
  waiter: Waiter | undefined;
};

type Abandoned = 'accepted' | 'sending' | 'abandoned';

export type Claim = 'won' | 'queued' | 'sending' | 'accepted' | 'failed' | 'abandoned' | 'verified';

export type ReceiptEffect = {
  before: string;
  /** Somebody waits for the first receipt of this message. */
  held: boolean;
  /** WhatsApp was known to reach the phone before. */
  knownReachable: boolean;
  message: Message | undefined;
  sealedCode: string | undefined;
  waiter: Waiter | undefined;
  telegram: string | undefined;
  acceptedAt: number | null;
  expiresAt: number | null;
  verified: boolean;
  channel: ChannelName | null;
  lost: FailureReason | null;
};

export type Verdict =
  | { kind: 'blocked'; waitMs: number }
  | { kind: 'none' }
  | { kind: 'wrong'; remaining: number }
  | { kind: 'verified'; messageId: string; message: Message | undefined; facts: Partial<Facts> };

type Text = string | null | undefined;

const keepMs = 20 * 60 * 1000;
const codeLifeMs = codeLifeSeconds * 1000;
const reachableMs = 30 * day;
const unreachableMs = 24 * hour;

const numberOf = (value: Text): number | null => (value ? Number(value) : null);
const messageOf = (value: Text): Message | undefined => (value ? JSON.parse(value) : undefined);
const waiterOf = (to: Text, id: Text): Waiter | undefined =>
  to && id ? { replyTo: to, correlationId: id } : undefined;

const toLive = (hash: Record<string, string>): LiveMessage => ({
  snapshot: messageOf(hash.snap),
  whatsapp: hash.whatsapp,
  telegram: hash.telegram,
  abandoned: hash.ab !== undefined,
  sealedCode: hash.sealed,
  lost: (hash.lost as FailureReason | undefined) ?? null,
  facts: {
    channel: (hash.channel as ChannelName | undefined) ?? null,
    acceptedAt: numberOf(hash.acc),
    expiresAt: numberOf(hash.exp),
    deliveredAt: numberOf(hash.del),
    readAt: numberOf(hash.read),
    verifiedAt: numberOf(hash.ver),
    failedAt: numberOf(hash.fail),
    failureReason: (hash.why as FailureReason | undefined) ?? null,
    expiredAt: null,
  },
});

const toReceiptEffect = (reply: Text[]): ReceiptEffect => {
  const [before, held, known, snap, sealed, to, id, telegram, acc, exp, ver, channel, lost] = reply;
  return {
    before: before ?? '',
    held: held === '1',
    knownReachable: known === '1',
    message: messageOf(snap),
    sealedCode: sealed ?? undefined,
    waiter: waiterOf(to, id),
    telegram: telegram ?? undefined,
    acceptedAt: numberOf(acc),
    expiresAt: numberOf(exp),
    verified: Boolean(ver),
    channel: (channel as ChannelName | null) ?? null,
    lost: (lost as FailureReason | null) ?? null,
  };
};

const toVerdict = (reply: (string | number | null)[], now: number): Verdict => {
  const [kind, first, snap, acc, exp, del, channel] = reply;
  if (kind === 'blocked') return { kind, waitMs: Number(first) };
  if (kind === 'wrong') return { kind, remaining: Number(first) };
  if (kind !== 'verified') return { kind: 'none' };
  return {
    kind,
    messageId: String(first),
    message: messageOf(snap as Text),
    facts: {
      channel: (channel as ChannelName | null) ?? null,
      acceptedAt: numberOf(acc as Text),
      expiresAt: numberOf(exp as Text),
      deliveredAt: numberOf(del as Text),
      verifiedAt: now,
    },
  };
};

const keysUnder = (prefix: string) => ({
  message: ({ recipient, id }: LiveRef) => `${prefix}m:{${recipient}}:${id}`,
  code: (recipient: string) => `${prefix}code:{${recipient}}`,
  failures: (recipient: string) => `${prefix}fails:{${recipient}}`,
  block: (recipient: string) => `${prefix}block:{${recipient}}`,
  reach: (phoneKey: string) => `${prefix}reach:{${phoneKey}}`,
});
type Keys = ReturnType<typeof keysUnder>;

const pairOf = (keys: Keys, ref: LiveRef): string[] => [
  keys.message(ref),
  keys.code(ref.recipient),
];

/** Provider answers come one by one; what is learnt within two milliseconds goes to Redis in one piece. */
const gatherMs = 2;

const createGather = () => {
  let next: Promise<void> | undefined;
  return (): Promise<void> => {
    next ??= new Promise((resolve) => {
      setTimeout(() => {
        next = undefined;
        resolve();
      }, gatherMs);
    });
    return next;
  };
};

/** The worker's side: claim, then say what the channel said. */
const sendingSide = (redis: RedisClient, keys: Keys) => {
  const claim = defineScript<Claim>(redis, { name: 'otpClaim', lua: scripts.claim, keys: 1 });
  const accept = defineScript<Text[] | null>(redis, {
    name: 'otpAccept',
    lua: scripts.accept,
    keys: 2,
  });
  const settle = defineScript<number>(redis, {
    name: 'otpSettle',
    lua: scripts.settleLeg,
    keys: 1,
  });
  const fail = defineScript<number>(redis, { name: 'otpFail', lua: scripts.failMessage, keys: 2 });
  const gather = createGather();

  return {
    /** Wins the right to call a channel for a message, once; or says what happened to it instead. */
    claim: (leg: ChannelName, ref: LiveRef, now: number, details: ClaimDetails): Promise<Claim> => {
      const { message, sealedCode, mac, waiter, reachable } = details;
      return claim(
        [keys.message(ref)],
        [
          ...[leg, now, keepMs, 'id', ref.id, 'snap', JSON.stringify(message)],
          ...['sealed', sealedCode, 'mac', mac.mac, 'kid', mac.id, 'reach', reachable ? 1 : 0],
          ...(waiter ? ['to', waiter.replyTo, 'cid', waiter.correlationId] : []),
        ],
      );
    },

    /**
     * A channel took the message: its code is valid from now on. With `hold` a receipt is awaited, unless one came
     * already. Undefined when a receipt has reported the failure meanwhile.
     */
    accept: async (leg: ChannelName, ref: LiveRef, now: number, hold: boolean) => {
      await gather();
      const reply = await accept(pairOf(keys, ref), [leg, now, codeLifeMs, hold ? 1 : 0]);
      if (reply === null) return undefined;
      const [acceptedAt, expiresAt, held] = reply;
      return { acceptedAt: Number(acceptedAt), expiresAt: Number(expiresAt), hold: held === '1' };
    },

    /** Ends a call that certainly sent nothing: the leg is free again, or has failed. */
    settleLeg: async (
      leg: ChannelName,
      ref: LiveRef,
      state: 'queued' | 'failed',
      why?: FailureReason,
    ) => (await settle([keys.message(ref)], [leg, state, why ?? ''])) === 1,

    /**
     * No channel is left. Undefined when the message arrived or was verified all the same; else whether a channel had
     * taken it, so that it may still arrive.
     */
    fail: async (
      ref: LiveRef,
      now: number,
      reason: FailureReason,
      code: 'void' | 'kept' | 'valid',
    ) => {
      const answer = await fail(pairOf(keys, ref), [now, reason, code, ref.id, codeLifeMs]);
      return answer === 0 ? undefined : { taken: answer === 2 };
    },
  };
};

/** The side of those who wait, ask and are told by the provider. */
const watchingSide = (redis: RedisClient, keys: Keys) => {
  const abandon = defineScript<Abandoned>(redis, {
    name: 'otpAbandon',
    lua: scripts.abandon,
    keys: 1,
  });
  const receipt = defineScript<Text[] | null>(redis, {
    name: 'otpReceipt',
    lua: scripts.receipt,
    keys: 2,
  });

  return {
    /** Gives a message up: `abandoned` is a promise that no channel will be called for it any more. */
    abandon: (ref: LiveRef, now: number): Promise<Abandoned> =>
      abandon([keys.message(ref)], [now, keepMs]),

    /** Adds a WhatsApp receipt; undefined when the message is not live or the receipt says nothing new. */
    receipt: async (ref: LiveRef, status: string, at: number, now: number) => {
      const latest = idTime(ref.id) + holdMs;
      const reply = await receipt(pairOf(keys, ref), [status, at, now, codeLifeMs, latest]);
      return reply === null ? undefined : toReceiptEffect(reply);
    },

    /** Who made the code that is valid for a recipient, and when: us for a send, the caller for a deliver. */
    originOfLiveCode: async (
      recipient: string,
    ): Promise<{ origin: Message['origin']; at: number } | undefined> => {
      const id = await redis.hget(keys.code(recipient), 'id');
      const snapshot = id && (await redis.hget(keys.message({ recipient, id }), 'snap'));
      const origin = messageOf(snapshot)?.origin;
      return origin && id ? { origin, at: idTime(id) } : undefined;
    },

    find: async (ref: LiveRef): Promise<LiveMessage | undefined> => {
      const hash = await redis.hgetall(keys.message(ref));
      return Object.keys(hash).length === 0 ? undefined : toLive(hash);
    },
  };
};

const verifyingSide = (redis: RedisClient, keys: Keys) => {
  const verify = defineScript<(string | number | null)[]>(redis, {
    name: 'otpVerify',
    lua: scripts.verify,
    keys: 3,
  });
  return {
    /** Checks a code and uses it up, or counts the failure. `macs` are the code's HMACs, one per pepper. */
    verify: async (recipient: string, macs: CodeMac[], now: number): Promise<Verdict> => {
      const reply = await verify(
        [keys.code(recipient), keys.failures(recipient), keys.block(recipient)],
        [
          ...[now, blockMs, failedAttempts, keys.message({ recipient, id: '' })],
          ...macs.flatMap(({ id, mac }) => [id, mac]),
        ],
      );
      return toVerdict(reply, now);
    },
  };
};

const reachability = (redis: RedisClient, keys: Keys) => ({
  /** Whether WhatsApp reaches a phone: true, false, or undefined when nobody knows. */
  reachable: async (phoneKey: string): Promise<boolean | undefined> => {
    const known = await redis.get(keys.reach(phoneKey));
    return known === null ? undefined : known === '1';
  },

  learnReachable: async (phoneKey: string, reachable: boolean): Promise<void> => {
    const life = reachable ? reachableMs : unreachableMs;
    await redis.set(keys.reach(phoneKey), reachable ? '1' : '0', 'PX', life);
  },
});

export type LiveStore = ReturnType<typeof createLiveStore>;

/** Live messages and codes; every call throws RedisUnavailable when Redis is away. Times are milliseconds. */
export const createLiveStore = (redis: RedisClient, prefix: string) => {
  const keys = keysUnder(prefix);
  return {
    ...sendingSide(redis, keys),
    ...watchingSide(redis, keys),
    ...verifyingSide(redis, keys),
    ...reachability(redis, keys),
  };
};
