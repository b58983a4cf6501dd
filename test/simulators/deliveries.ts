// Webhook calls of the simulated providers: POSTed over kept-alive connections and repeated until accepted.
import { Agent, request } from 'undici';
import type { Timers } from './clock.ts';

export type Delivery = {
  /** Where to POST; asked again before every attempt. Undefined: nowhere yet, tried again later. */
  url(): string | undefined;
  headers: Record<string, string>;
  body: Buffer;
  /** How many events the body holds. */
  events: number;
  /** Whether a Retry-After header of the receiver is honoured (Telegram does). */
  honourRetryAfter?: boolean;
};

const firstDelayMs = 100;
const maxDelayMs = 5000;
const attemptTimeoutMs = 10_000;
const maxWaiting = 20_000;
const connections = 32;

const delayBefore = (retry: number): number => Math.min(firstDelayMs * 2 ** retry, maxDelayMs);

export type Deliveries = ReturnType<typeof createDeliveries>;

/** Creates the sender of one provider's webhooks. Different deliveries run side by side, in no order. */
export const createDeliveries = (timers: Timers) => {
  const agent = new Agent({ connections, pipelining: 1, keepAliveTimeout: 4000 });
  const ending = new AbortController();
  let generation = 0;
  let waiting = 0;
  const zero = { accepted_posts: 0, accepted_events: 0, refused_attempts: 0, dropped_events: 0 };
  let counts = { ...zero };

  /** True when accepted, else ms to wait at least before the next attempt. */
  const attempt = async (delivery: Delivery): Promise<true | number> => {
    const url = delivery.url();
    if (!url) return 0;
    try {
      const { statusCode, headers, body } = await request(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...delivery.headers },
        body: delivery.body,
        dispatcher: agent,
        headersTimeout: attemptTimeoutMs,
        bodyTimeout: attemptTimeoutMs,
        signal: ending.signal,
      });
      await body.dump();
      if (statusCode >= 200 && statusCode < 300) return true;
      const seconds = delivery.honourRetryAfter ? Number(headers['retry-after']) : 0;
      return Number.isFinite(seconds) && seconds > 0 ? Math.min(seconds, 3600) * 1000 : 0;
    } catch {
      return 0;
    }
  };

  const run = async (delivery: Delivery): Promise<boolean> => {
    const own = generation;
    for (let retry = 0; !ending.signal.aborted; retry += 1) {
      const outcome = await attempt(delivery);
      if (own !== generation) return false;
      if (outcome === true) {
        counts.accepted_posts += 1;
        counts.accepted_events += delivery.events;
        return true;
      }
      counts.refused_attempts += 1;
      await timers.wait(Math.max(outcome, delayBefore(retry)));
      if (own !== generation) return false;
    }
    return false;
  };

  return {
    /** Sends a delivery until it is accepted; false when it was dropped (too many wait, reset or close). */
    post: async (delivery: Delivery): Promise<boolean> => {
      if (waiting >= maxWaiting) {
        counts.dropped_events += delivery.events;
        return false;
      }
      waiting += 1;
      try {
        return await run(delivery);
      } finally {
        waiting -= 1;
      }
    },
    summary: () => ({ ...counts, waiting }),
    /** Forgets what was not accepted yet, and the counts. */
    reset: (): void => {
      generation += 1;
      counts = { ...zero };
    },
    close: async (): Promise<void> => {
      generation += 1;
      ending.abort();
      await agent.destroy();
    },
  };
};
