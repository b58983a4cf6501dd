// How one endpoint fares, learnt from its answers: how much it may have at once, whether it is slow, and its breaker.
import { minute, second } from '../kernel/clock.ts';

/** One attempt that is under way. `kind` is whose slots it takes, `probe` the one attempt behind a pause. */
export type Ticket = { startedAt: number; kind: 'proven' | 'new' | 'slow'; probe: boolean };

/** What an attempt came to. */
export type Result = {
  ok: boolean;
  ms: number;
  timedOut: boolean;
  /** There was an answer, whatever it said. */
  answered: boolean;
  /** A fault of the endpoint's machinery (no answer, 5xx), not a refusal. */
  hard: boolean;
  /** One that does not (a test, a manual one) may heal but never harms. */
  counts: boolean;
};

export type Health = {
  /** Attempts at once: from 1, one more with each success, half with each failure. */
  window: number;
  /** It has taken something, here and lately. */
  proven: boolean;
  timedOut: boolean;
  running: Set<Ticket>;
  recent: Result[];
  /** How many of these took long. */
  late: number;
  failuresInRow: number;
  /** The breaker: 0 is closed, a time is when one probe may go. */
  opensAt: number;
  pauses: number;
};

const windowMost = 25;
const remembered = 20;
const failuresToOpen = 5;
const firstPauseMs = 30 * second;
const longestPauseMs = 10 * minute;
/** The 95th percentile above which an endpoint is slow. */
const slowMs = 5 * second;
/** An attempt that takes this long, and three times what is usual there, is a sign that the endpoint has died. */
const suspectMs = second;

/** `troubled`: MySQL says that it has been failing, so that a restart is no amnesty. */
export const newHealth = (troubled: boolean): Health => ({
  ...{ window: 1, proven: false, timedOut: troubled, running: new Set(), recent: [], late: 0 },
  ...{ failuresInRow: 0, opensAt: 0, pauses: 0 },
});

/** Whether an endpoint takes slots of the slow pool: its last attempts ended at the deadline, or late. */
export const isSlow = ({ timedOut, late }: Health): boolean => timedOut || late > remembered * 0.05;

const usualMs = ({ recent }: Health): number => {
  const taken = recent.filter(({ ok }) => ok);
  return taken.reduce((sum, { ms }) => sum + ms, 0) / Math.max(taken.length, 1);
};

/** Whether something hangs there: then nothing more is sent until it is known what becomes of it. */
const hangs = (health: Health, now: number): boolean => {
  const [oldest] = health.running;
  if (oldest === undefined || now - oldest.startedAt <= suspectMs) return false;
  return now - oldest.startedAt > 3 * usualMs(health);
};

/** How many more attempts the endpoint may have now. */
export const roomOf = (health: Health, now: number): number => {
  const { window, running, opensAt } = health;
  if (opensAt > now || hangs(health, now)) return 0;
  return (opensAt > 0 ? 1 : window) - running.size;
};

/** Whether all that comes is kept back for now: the breaker is open. */
export const isOpen = ({ opensAt, running }: Health, now: number): boolean =>
  opensAt > now || (opensAt > 0 && running.size > 0);

const halfOfRecentFailed = ({ recent }: Health): boolean =>
  recent.length >= remembered &&
  recent.filter(({ ok }) => !ok).length * 2 >= remembered &&
  recent.some(({ hard }) => hard);

const open = (health: Health, now: number): void => {
  health.opensAt = now + Math.min(firstPauseMs * 2 ** health.pauses, longestPauseMs);
  health.pauses += 1;
};

const noteSuccess = (health: Health): void => {
  const wasOpen = health.opensAt > 0;
  health.window = wasOpen ? 1 : Math.min(health.window + 1, windowMost);
  if (wasOpen) Object.assign(health, { recent: [], late: 0 });
  Object.assign(health, { proven: true, failuresInRow: 0, opensAt: 0, pauses: 0 });
};

const noteFailure = (health: Health, ticket: Ticket, now: number): void => {
  health.window = Math.max(1, Math.floor(health.window / 2));
  // What was under way when it opened says nothing new: only the probe does.
  if (health.opensAt > 0) {
    if (ticket.probe) open(health, now);
    return;
  }
  health.failuresInRow += 1;
  if (health.failuresInRow >= failuresToOpen || halfOfRecentFailed(health)) open(health, now);
};

/** Notes how an attempt ended. */
export const noteEnd = (health: Health, ticket: Ticket, result: Result, now: number): void => {
  health.running.delete(ticket);
  if (!result.ok && !result.counts) return;
  health.recent.push(result);
  if (result.ms > slowMs) health.late += 1;
  const forgotten = health.recent.length > remembered ? health.recent.shift() : undefined;
  if (forgotten && forgotten.ms > slowMs) health.late -= 1;
  health.timedOut = result.timedOut;
  if (result.ok) noteSuccess(health);
  else noteFailure(health, ticket, now);
};
