// Refilling: an endpoint that has room again gets what waits for it in MySQL.
import type { Clock } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import { describeError } from '../kernel/redact.ts';
import type { Delivery } from './delivery.ts';
import type { Endpoint } from './endpoint-store.ts';
import type { Gate } from './gate.ts';
import type { Lane, Lanes } from './lanes.ts';
import type { WebhookStore } from './store.ts';

const atOnce = 4;
const takeMost = 100;
/** Fewer in memory than this are filled up. */
const lowWater = 20;
/** Of so many reads one begins with the oldest: a backlog must not delay the news of what happens now. */
const oldestEvery = 5;

export type Refill = {
  /** Reads more of a lane if there is any and it has room. */
  want(lane: Lane): void;
  drain(): Promise<void>;
};

export const createRefill = (deps: {
  webhooks: WebhookStore;
  gate: Gate;
  lanes: Lanes;
  clock: Clock;
  log: Log;
  leaseMs: number;
  offer(deliveries: readonly Delivery[], endpoints: ReadonlyMap<string, Endpoint>): Promise<void>;
  /** Resolves when more may be taken in hand. */
  ready(): Promise<void>;
  stopped(): boolean;
}): Refill => {
  const { webhooks, gate, lanes, clock, log, leaseMs, offer, ready, stopped } = deps;
  const queue = new Set<Lane>();
  const open = new Set<Promise<void>>();

  const read = async (lane: Lane): Promise<void> => {
    await ready();
    const { endpoint, waiting } = lane;
    const room = gate.room(endpoint) + gate.patience(endpoint) - waiting.length;
    const limit = Math.min(Math.max(room, 1), takeMost);
    // What is parked from here on says so anew.
    lane.parked = false;
    lane.reads += 1;
    const newestFirst = lane.reads % oldestEvery !== 0;
    const given = { now: clock.now(), leaseMs, limit, newestFirst };
    const found = await webhooks.takeWaiting(endpoint.accountId, given);
    if (found.length === limit) lane.parked = true;
    // A test may be among them, and is for the address that is set now.
    if (found.length > 0) await offer(found, await webhooks.endpoints([endpoint.accountId]));
  };

  const run = async (lane: Lane): Promise<void> => {
    try {
      await read(lane);
    } catch (error) {
      lane.parked = true;
      log.warn({ reason: describeError(error) }, 'waiting webhooks not read');
    } finally {
      lane.fetching = false;
      lanes.close(lane);
    }
  };

  const next = (): void => {
    for (const lane of queue) {
      if (open.size >= atOnce) return;
      queue.delete(lane);
      lane.fetching = true;
      const running = run(lane).finally(() => {
        open.delete(running);
        want(lane);
        next();
      });
      open.add(running);
    }
  };

  const want = (lane: Lane): void => {
    if (!lane.parked || lane.fetching || stopped()) return;
    if (lane.waiting.length >= lowWater || gate.room(lane.endpoint) === 0) return;
    queue.add(lane);
    next();
  };

  return {
    want,
    drain: async () => {
      queue.clear();
      await Promise.all(open);
    },
  };
};
