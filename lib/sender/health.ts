// The health of sending numbers: decided in each worker, shown to everybody through Redis.

import type { RedisClient } from '../infra/redis.ts';
import { type Clock, minute } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import { describeError } from '../kernel/redact.ts';
import {
  healthySender,
  isPaused,
  nextHealth,
  type SenderHealth,
  type SenderState,
} from './breaker.ts';

const shownForMs = 10 * minute;
/** A state that lasts is shown anew before it is forgotten. */
const againMs = minute;

export type ChannelHealth = {
  status: 'ok' | 'degraded' | 'paused' | 'down';
  since: string | null;
};

export type SenderWatch = {
  paused(senderId: string): boolean;
  /** Takes note of an answer; a change of state is logged and shown to other processes. */
  note(senderId: string, answer: SenderState): void;
  /** What the workers of all processes last showed of a sender. */
  shown(senderId: string): Promise<ChannelHealth>;
};

const toChannelHealth = (text: string | null): ChannelHealth => {
  if (text === null) return { status: 'ok', since: null };
  const { state, since } = JSON.parse(text) as SenderHealth;
  const status = state === 'broken' ? 'down' : 'degraded';
  return { status: state === 'ok' ? 'ok' : status, since: new Date(since).toISOString() };
};

/** Health of the senders this process uses; `redis` only shows it, decisions never wait for it. */
export const createSenderWatch = (deps: {
  redis: RedisClient;
  prefix: string;
  clock: Clock;
  log: Log;
}): SenderWatch => {
  const { redis, prefix, clock, log } = deps;
  const known = new Map<string, SenderHealth>();
  const shownAt = new Map<string, number>();
  const key = (senderId: string) => `${prefix}sender:${senderId}`;

  const show = (senderId: string, health: SenderHealth, now: number): void => {
    shownAt.set(senderId, now);
    redis
      .set(key(senderId), JSON.stringify(health), 'PX', shownForMs)
      .catch((error: unknown) =>
        log.debug({ reason: describeError(error) }, 'sender health not shown'),
      );
  };

  return {
    paused: (senderId) => {
      const health = known.get(senderId);
      return health !== undefined && isPaused(health, clock.now());
    },
    note: (senderId, answer) => {
      const now = clock.now();
      const before = known.get(senderId) ?? healthySender(now);
      const after = nextHealth(before, answer, now);
      if (after === before) return;
      known.set(senderId, after);
      const changed = after.state !== before.state;
      if (changed) log.warn({ sender: senderId, state: after.state }, 'sender changed state');
      const lasts = after.state !== 'ok' && now - (shownAt.get(senderId) ?? 0) >= againMs;
      if (changed || lasts) show(senderId, after, now);
    },
    shown: async (senderId) => toChannelHealth(await redis.get(key(senderId))),
  };
};
