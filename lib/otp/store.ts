// Live messages and codes in Redis: who may send, which code is valid, what has become known; MySQL follows.
import { holdMs } from '../billing/rules.ts';
import type { RedisClient } from '../infra/redis.ts';
import { defineScript } from '../infra/redis-script.ts';
import { day, hour } from '../kernel/clock.ts';
import { idTime } from '../kernel/ids.ts';
import { personOf } from '../kernel/recipients.ts';
import type { ChannelName, FailureReason, Message } from '../messages/rules.ts';
import { codeLifeSeconds } from '../messages/rules.ts';
import {
  type CodeMac,
  type LiveMessage,
  type LiveRef,
  messageOf,
  type Text,
  toLive,
  toReceiptEffect,
  toVerdict,
  toVerified,
  type Verdict,
  type Verified,
  type Waiter,
} from './live-message.ts';
import { blockMs, failedAttempts } from './rules.ts';
import * as scripts from './scripts.ts';

export type ClaimDetails = {
  message: Message;
  /** WhatsApp is known to reach the phone. */
  reachable: boolean;
  sealedCode: string;
  mac: CodeMac;
  waiter: Waiter | undefined;
};

/** What became of giving a message up; with a reason it is given up, and yet a channel may have it. */
export type Abandoned =
  | 'accepted'
  | 'sending'
  | 'abandoned'
  | 'outcome_unknown'
  | 'telegram_outcome_unknown';

export type Claim = 'won' | 'queued' | 'sending' | 'accepted' | 'failed' | 'abandoned' | 'verified';

const keepMs = 20 * 60 * 1000;
const codeLifeMs = codeLifeSeconds * 1000;
const reachableMs = 30 * day;
const unreachableMs = 24 * hour;

/** The other form of a WhatsApp recipient has codes of its own, in the slot of the person; failures count together. */
const slotOf = (recipient: string): string => {
  const person = personOf(recipient);
  return `{${person}}${recipient.slice(person.length)}`;
};

const keysUnder = (prefix: string) => ({
  message: ({ recipient, id }: LiveRef) => `${prefix}m:${slotOf(recipient)}:${id}`,
  code: (recipient: string) => `${prefix}code:${slotOf(recipient)}`,
  failures: (recipient: string) => `${prefix}fails:{${personOf(recipient)}}`,
  block: (recipient: string) => `${prefix}block:{${personOf(recipient)}}`,
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
     * already. Undefined when a receipt has reported the failure meanwhile; `forgotten` when Redis has lost the claim.
     */
    accept: async (leg: ChannelName, ref: LiveRef, now: number, hold: boolean) => {
      await gather();
      const reply = await accept(pairOf(keys, ref), [leg, now, codeLifeMs, hold ? 1 : 0]);
      if (reply === null) return undefined;
      if (reply.length === 0) return 'forgotten' as const;
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
  const find = async (ref: LiveRef): Promise<LiveMessage | undefined> => {
    const hash = await redis.hgetall(keys.message(ref));
    return Object.keys(hash).length === 0 ? undefined : toLive(hash);
  };
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
    /** Gives a message up: `abandoned`, or why a leg was lost, promises that no channel will be called for it any more. */
    abandon: (ref: LiveRef, now: number): Promise<Abandoned> =>
      abandon([keys.message(ref)], [now, keepMs]),

    /** Adds a WhatsApp receipt; undefined when the message is not live or the receipt says nothing new. */
    receipt: async (ref: LiveRef, status: string, at: number, now: number) => {
      const latest = idTime(ref.id) + holdMs;
      const reply = await receipt(pairOf(keys, ref), [status, at, now, codeLifeMs, latest, keepMs]);
      return reply === null ? undefined : toReceiptEffect(reply);
    },

    /** Who made the code that is valid for a recipient, and when: us for a send, the caller for a deliver. */
    originOfLiveCode: async (
      recipient: string,
    ): Promise<{ origin: Message['origin']; at: number } | undefined> => {
      const [id, mac] = await redis.hmget(keys.code(recipient), 'id', 'mac');
      const snapshot = id && mac && (await redis.hget(keys.message({ recipient, id }), 'snap'));
      const origin = messageOf(snapshot)?.origin;
      return origin && id ? { origin, at: idTime(id) } : undefined;
    },

    find,

    /**
     * The same for a job that goes on from it: from now on it is kept as long as a fresh one. `replaced`: the code of a
     * newer message is the recipient's, or was.
     */
    findAndKeep: async (ref: LiveRef) => {
      const [live, current] = await Promise.all([
        find(ref),
        redis.hget(keys.code(ref.recipient), 'id'),
        redis.pexpire(keys.message(ref), keepMs),
      ]);
      return { live, replaced: current !== null && current > ref.id };
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
    /**
     * Checks a code and uses it up, or counts the failure. `macs` are the code's HMACs, one per pepper; `attempt` names
     * this call, so that `usedBy` can tell what became of it.
     */
    verify: async (
      recipient: string,
      macs: CodeMac[],
      now: number,
      attempt: string,
    ): Promise<Verdict> => {
      const reply = await verify(
        [keys.code(recipient), keys.failures(recipient), keys.block(recipient)],
        [
          ...[now, blockMs, failedAttempts, keys.message({ recipient, id: '' }), keepMs, attempt],
          ...macs.flatMap(({ id, mac }) => [id, mac]),
        ],
      );
      return toVerdict(reply, now);
    },

    /** What an attempt at `now` (ms) was answered, if it used the recipient's code up; else undefined. */
    usedBy: async (
      recipient: string,
      attempt: string,
      now: number,
    ): Promise<Verified | undefined> => {
      const id = await redis.hget(keys.code(recipient), 'id');
      if (id === null) return undefined;
      const [by, ...seen] = await redis.hmget(
        keys.message({ recipient, id }),
        ...['by', 'snap', 'acc', 'exp', 'del', 'channel'],
      );
      return by === attempt ? toVerified([id, ...seen], now) : undefined;
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
