// Running attempts: whatever the gate lets go of a lane goes, and each end makes room for the next.
import { type Clock, minute } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import { describeError } from '../kernel/redact.ts';
import { type Attempt, isUrgent } from './attempt.ts';
import type { Delivery } from './delivery.ts';
import type { Gate } from './gate.ts';
import type { Ticket } from './health.ts';
import type { Lane, Lanes } from './lanes.ts';
import type { Recorder } from './record.ts';

/** Until an endpoint is given up in MySQL, too; when that fails, the next attempt gives it up again. */
const givenUpMs = minute;
/** Lanes that are looked at when a slot of the process is free again. */
const starvedAtOnce = 8;

export type RunnerDeps = {
  gate: Gate;
  lanes: Lanes;
  attempt: Attempt;
  recorder: Recorder;
  clock: Clock;
  log: Log;
  /** How long one attempt may take, ms. */
  timeoutMs: number;
};

export type Runner = {
  /** Starts a delivery or lets it wait here; false when it has to wait in MySQL. */
  enter(lane: Lane, delivery: Delivery): boolean;
  /** Whether nothing more can wait here for its turn. */
  isFull(lane: Lane): boolean;
  /** Lets go what may. What cannot, since its endpoint is left alone for now, is handed to `onClosed`. */
  advance(lane: Lane): void;
  /** Resolves when all that runs has ended. */
  drain(): Promise<void>;
};

const unfinished = {
  ...{ ok: false, ms: 0, timedOut: false, answered: true, hard: false, counts: false },
};

/** One attempt from its ticket to its row; `ended` hears of the room it leaves before it is written down. */
const attemptOnce = async (
  { gate, attempt, recorder, clock, log }: RunnerDeps,
  given: { lane: Lane; delivery: Delivery; ticket: Ticket; ended(lane: Lane): void },
): Promise<void> => {
  const { lane, delivery, ticket, ended } = given;
  const { endpoint } = lane;
  try {
    const attempted = await attempt(delivery, endpoint);
    gate.end(endpoint, ticket, attempted.result);
    if (attempted.giveUp) gate.pause(endpoint, clock.now() + givenUpMs);
    else if (attempted.pauseUntil !== undefined) gate.pause(endpoint, attempted.pauseUntil);
    ended(lane);
    await recorder.add(endpoint, attempted);
  } catch (error) {
    if (gate.end(endpoint, ticket, unfinished)) ended(lane);
    // Its lease ends by itself, and then it comes again.
    log.warn({ reason: describeError(error) }, 'webhook attempt not finished');
  }
};

export const createRunner = (
  deps: RunnerDeps,
  /** There is room in a lane; `onClosed` gets what was taken out of one. */
  given: {
    onRoom(lane: Lane): void;
    onClosed(lane: Lane, deliveries: Delivery[]): void;
    stopped(): boolean;
  },
): Runner => {
  const { gate, lanes, clock, timeoutMs } = deps;
  let open = 0;
  let onIdle: (() => void) | undefined;
  /** Lanes for which there was room at their endpoint, but none in the process. */
  const starved = new Set<Lane>();

  const admit = (lane: Lane, delivery: Delivery) => {
    const verdict = gate.admit(lane.endpoint, isUrgent(delivery));
    if (verdict === 'full') starved.add(lane);
    return verdict;
  };

  const start = (lane: Lane, delivery: Delivery, ticket: Ticket): void => {
    lane.running += 1;
    open += 1;
    void attemptOnce(deps, { lane, delivery, ticket, ended }).then(closed);
  };

  const closed = (): void => {
    open -= 1;
    if (open === 0) onIdle?.();
  };

  /** Too old to be attempted under its lease: it comes again by itself. */
  const isStale = ({ runningUntil }: Delivery): boolean =>
    (runningUntil ?? 0) - clock.now() < timeoutMs;

  const firstOf = (lane: Lane): Delivery | undefined => {
    while (lane.waiting[0] && isStale(lane.waiting[0])) lanes.shift(lane);
    return given.stopped() ? undefined : lane.waiting[0];
  };

  const advance = (lane: Lane): void => {
    for (let first = firstOf(lane); first; first = firstOf(lane)) {
      const verdict = admit(lane, first);
      if (verdict === 'closed') given.onClosed(lane, lanes.empty(lane));
      if (typeof verdict === 'string') return;
      lanes.shift(lane);
      start(lane, first, verdict);
    }
  };

  const feedStarved = (): void => {
    const chosen = [...starved].slice(0, starvedAtOnce);
    for (const lane of chosen) {
      starved.delete(lane);
      advance(lane);
      given.onRoom(lane);
    }
  };

  const ended = (lane: Lane): void => {
    lane.running -= 1;
    advance(lane);
    given.onRoom(lane);
    if (starved.size > 0) feedStarved();
  };

  const isFull = ({ waiting, endpoint }: Lane): boolean =>
    lanes.isFull() || waiting.length >= gate.patience(endpoint);

  return {
    advance,
    isFull,
    enter: (lane, delivery) => {
      if (given.stopped()) return false;
      if (lane.waiting.length === 0) {
        const verdict = admit(lane, delivery);
        if (typeof verdict !== 'string') {
          start(lane, delivery, verdict);
          return true;
        }
      }
      if (isFull(lane)) return false;
      lanes.push(lane, delivery);
      return true;
    },
    drain: () =>
      new Promise((resolve) => {
        onIdle = resolve;
        if (open === 0) resolve();
      }),
  };
};
