// What the rules of problems look at, and what they say.

export type Severity = 'urgent' | 'warning' | 'note';

export type Problem = {
  severity: Severity;
  /** What it is about, the same as long as it lasts. */
  about: string;
  text: string;
  /** Where one acts on it, and what the link says. */
  href: string;
  act: string;
};

type Check = { status: string };

/** One process as the listener shows it. */
export type SeenProcess = {
  id: string;
  name: string;
  state: string;
  silent_ms: number;
  event_loop_p99_ms: number;
  connected: { redis: boolean; rabbitmq: boolean };
  doing: { jobs: Record<string, number> };
  clock_offsets_ms: { redis: number | null; mysql: number | null };
  forwarded_ignored?: boolean;
};

/** One job's queues as the listener shows them. */
export type SeenQueue = {
  job: string;
  ready: number;
  unacked: number | null;
  waiting: readonly { seconds: number; ready: number }[];
  dead: number;
  consumers: number;
  oldest_age_ms: number | null;
  oldest_age_is_least: boolean;
};

export type SeenChannel = {
  name: string;
  /** The job that sends over it. */
  job: string;
  state: 'ok' | 'degraded' | 'down' | 'paused' | 'off';
  since: string | null;
  paused: { by: string; reason: string; at: string } | null;
  /** What it does in the place of success, since when (hh:mm), and how often within the last minutes. */
  error: { what: string; since: string; failed: number; calls: number; most: boolean } | null;
};

/** A part that could not be looked at, and why not. */
export type Unseen = { what: string; why: string };

/** What could be learnt; what is left out could not, and is named in `unseen`. */
export type Snapshot = {
  unseen?: readonly Unseen[] | undefined;
  checks?: { redis: Check; mysql: Check; rabbitmq: Check } | undefined;
  processes?: readonly SeenProcess[] | undefined;
  queues?: readonly SeenQueue[] | undefined;
  channels?: readonly SeenChannel[] | undefined;
  switches?: readonly { name: string; text: string }[] | undefined;
  books?: { at: string; mismatches: number } | null | undefined;
  capacityPending?: number | undefined;
  paymentsUnclaimed?: { count: number; more: boolean } | undefined;
};
