// What waits in one process, by endpoint: a few deliveries in memory, and whether more wait in MySQL.
import type { Delivery } from './delivery.ts';
import type { Endpoint } from './endpoint-store.ts';

export type Lane = {
  /** As it was read last. */
  endpoint: Endpoint;
  /** Leased to this process, oldest first. */
  waiting: Delivery[];
  running: number;
  /** More of it waits in MySQL. */
  parked: boolean;
  /** It is being read from there. */
  fetching: boolean;
  /** How often it was read: now and then the oldest come before the newest. */
  reads: number;
};

/** Deliveries that wait in memory, of all endpoints together. */
const waitingMost = 2_000;

export type Lanes = {
  /** The lane of an endpoint, opened when there is none; it takes the endpoint over when that is no older. */
  of(endpoint: Endpoint): Lane;
  at(accountId: string): Lane | undefined;
  /** Forgets a lane in which nothing is left. */
  close(lane: Lane): void;
  all(): Iterable<Lane>;
  /** Whether as many deliveries wait in memory as may. */
  isFull(): boolean;
  push(lane: Lane, delivery: Delivery): void;
  shift(lane: Lane): Delivery | undefined;
  /** Takes all that waits in memory out. */
  empty(lane: Lane): Delivery[];
};

export const createLanes = (): Lanes => {
  const lanes = new Map<string, Lane>();
  let size = 0;
  return {
    of: (endpoint) => {
      const known = lanes.get(endpoint.accountId);
      if (known) {
        if (endpoint.changedAt >= known.endpoint.changedAt) known.endpoint = endpoint;
        return known;
      }
      const lane: Lane = {
        ...{ endpoint, waiting: [], running: 0 },
        ...{ parked: false, fetching: false, reads: 0 },
      };
      lanes.set(endpoint.accountId, lane);
      return lane;
    },
    at: (accountId) => lanes.get(accountId),
    close: (lane) => {
      const { running, waiting, parked, fetching } = lane;
      if (running > 0 || waiting.length > 0 || parked || fetching) return;
      lanes.delete(lane.endpoint.accountId);
    },
    all: () => lanes.values(),
    isFull: () => size >= waitingMost,
    push: (lane, delivery) => {
      lane.waiting.push(delivery);
      size += 1;
    },
    shift: (lane) => {
      const first = lane.waiting.shift();
      if (first) size -= 1;
      return first;
    },
    empty: (lane) => {
      size -= lane.waiting.length;
      return lane.waiting.splice(0);
    },
  };
};
