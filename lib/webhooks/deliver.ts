// Delivering: what is due goes out as far as the gate lets it; what may not waits, here for a moment or in MySQL.
import type { Outbound } from '../infra/outbound.ts';
import type { Chore } from '../kernel/chore.ts';
import type { Clock } from '../kernel/clock.ts';
import { second } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import { describeError } from '../kernel/redact.ts';
import type { Sealer } from '../kernel/secrets.ts';
import { type Attempt, createAttempt, createSigningKeys } from './attempt.ts';
import type { Delivery } from './delivery.ts';
import { createEgress } from './egress.ts';
import type { Endpoint } from './endpoint-store.ts';
import type { Endpoints } from './endpoints.ts';
import { createGate, type Gate } from './gate.ts';
import { createLanes, type Lane, type Lanes } from './lanes.ts';
import { createPace } from './pace.ts';
import { createPutAway } from './put-away.ts';
import { createRecorder } from './record.ts';
import { createRefill } from './refill.ts';
import { createRunner, type Runner } from './run.ts';
import type { WebhookStore } from './store.ts';
import type { Place } from './work-store.ts';

export type DeliverDeps = {
  webhooks: WebhookStore;
  endpoints: Endpoints;
  sealer: Sealer;
  outbound: Outbound;
  clock: Clock;
  log: Log;
  version: string;
  /** How long one attempt may take, ms. */
  timeoutMs: number;
};

const pollMs = second;
const takeMost = 200;
/** How much longer than its attempt a lease is: that long it may wait in memory. */
const spareMs = 15 * second;

export type Deliverer = Chore & {
  /** One attempt past all windows, for whoever writes down what it comes to. */
  attempt: Attempt;
  /** Something may be due: looks at once. */
  kick(): void;
  /** Resolves when more may be taken in hand. */
  ready(): Promise<void>;
  /** Where a new delivery to this endpoint begins. */
  place(endpoint: Endpoint, type: string): Place;
  /** Takes deliveries that were added: those that are leased go out, of the others it is known that they wait. */
  offer(deliveries: readonly Delivery[], endpoints: ReadonlyMap<string, Endpoint>): Promise<void>;
};

/** Runs `look` again and again as long as it answers that there is more, and never twice at once. */
const createLooking = (look: () => Promise<boolean>, log: Log, stopped: () => boolean) => {
  let again = false;
  let looking: Promise<void> | undefined;
  const loop = async (): Promise<void> => {
    try {
      while (again && !stopped()) again = await look();
    } catch (error) {
      log.warn({ reason: describeError(error) }, 'due webhooks not read');
    } finally {
      looking = undefined;
    }
  };
  return {
    kick: (): void => {
      again = true;
      looking ??= loop();
    },
    ended: async () => looking,
  };
};

/** What there is one of in a process, and what each has learnt of endpoints is in. */
const createParts = (deps: DeliverDeps) => {
  const { webhooks, endpoints, sealer, outbound, clock, log, version } = deps;
  const lanes = createLanes();
  return {
    gate: createGate(clock),
    lanes,
    recorder: createRecorder({ ...deps, forget: endpoints.forget }),
    attempt: createAttempt({
      ...{ outbound, clock, version },
      keys: createSigningKeys(sealer, clock),
      egress: createEgress({ clock, log }),
    }),
    putAway: createPutAway({ webhooks, lanes, clock, log }),
  };
};

const createPlace =
  (given: {
    gate: Gate;
    lanes: Lanes;
    runner: Runner;
    clock: Clock;
    leaseMs: number;
    stopped(): boolean;
  }): Deliverer['place'] =>
  (endpoint, type) => {
    const { gate, lanes, runner, clock, leaseMs, stopped } = given;
    if (stopped()) return { kind: 'due' };
    const lane = lanes.at(endpoint.accountId);
    const refused = gate.room(endpoint) === 0 && (lane === undefined || runner.isFull(lane));
    if (refused && !endpoint.disabled && type !== 'webhook.test') return { kind: 'waiting' };
    return { kind: 'leased', until: clock.now() + leaseMs };
  };

/**
 * Several processes share the work by leases in MySQL; what each has learnt of endpoints it keeps to itself, so that an
 * endpoint may have as many attempts at once from each of them.
 */
export const createDeliverer = (deps: DeliverDeps): Deliverer => {
  const { webhooks, clock, log, timeoutMs } = deps;
  const leaseMs = timeoutMs + spareMs;
  const parts = createParts(deps);
  const { lanes, recorder, putAway } = parts;
  let timer: NodeJS.Timeout | undefined;
  let stopping = false;
  const stopped = (): boolean => stopping;

  const onRoom = (lane: Lane): void => refill.want(lane);
  const runner = createRunner(
    { ...parts, clock, log, timeoutMs },
    { onRoom, onClosed: (_lane, deliveries) => putAway.later(deliveries), stopped },
  );

  const pace = createPace({ running: parts.gate.proven, written: recorder.caughtUp });

  const offer: Deliverer['offer'] = async (deliveries, endpoints) => {
    const away = { parked: [] as Delivery[], held: [] as Delivery[], failed: [] as Delivery[] };
    for (const delivery of deliveries) {
      const endpoint = endpoints.get(delivery.accountId);
      if (!endpoint) away.failed.push(delivery);
      else if (endpoint.disabled) away.held.push(delivery);
      else if (delivery.runningUntil === null) lanes.of(endpoint).parked = true;
      else if (!runner.enter(lanes.of(endpoint), delivery)) away.parked.push(delivery);
    }
    await putAway.now(away, endpoints);
  };

  const refill = createRefill({
    ...{ ...deps, ...parts, leaseMs, offer, stopped },
    ready: pace.ready,
  });

  const look = async (): Promise<boolean> => {
    await pace.ready();
    const due = await webhooks.takeDue({ now: clock.now(), leaseMs, limit: takeMost });
    const ids = [...new Set(due.map(({ accountId }) => accountId))];
    await offer(due, await webhooks.endpoints(ids));
    for (const { accountId, waited } of due) {
      // Where one was put to wait, by a process that may be gone, others may wait: they are not left to their own times.
      const lane = waited ? lanes.at(accountId) : undefined;
      if (lane) lane.parked = true;
      if (lane) onRoom(lane);
    }
    return due.length === takeMost;
  };
  const looking = createLooking(look, log, stopped);

  const tick = (): void => {
    looking.kick();
    for (const lane of lanes.all()) {
      runner.advance(lane);
      onRoom(lane);
      // Here and not at each end: a busy endpoint keeps its lane.
      lanes.close(lane);
    }
  };

  return {
    offer,
    attempt: parts.attempt,
    kick: looking.kick,
    ready: pace.ready,
    place: createPlace({ ...parts, ...deps, runner, leaseMs, stopped }),
    start: () => {
      stopping = false;
      timer = setInterval(tick, pollMs);
      tick();
    },
    stop: async () => {
      stopping = true;
      clearInterval(timer);
      await looking.ended();
      await refill.drain();
      const left = [...lanes.all()].flatMap((lane) => lanes.empty(lane));
      await webhooks.giveBack(left, clock.now()).catch(() => undefined);
      await runner.drain();
      await Promise.all([recorder.drain(), putAway.drain()]);
    },
  };
};
