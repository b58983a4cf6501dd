// What a process says of itself every two seconds, and how its silence is judged.

/** A metric as prom-client's `getMetricsAsJSON` writes it. */
export type MetricJson = {
  name: string;
  help: string;
  type: string;
  aggregator: string;
  values: {
    value: number;
    labels: Record<string, string | number>;
    metricName?: string;
  }[];
};

/** What a process has in hand at this moment. */
export type Doing = {
  /** Requests that are not answered yet. */
  requests: number;
  /** Jobs in hand, for every job the process consumes; one that rests has 0. */
  jobs: Record<string, number>;
  /** Jobs settled since the process started, by job. */
  handled: Record<string, number>;
};

/** Milliseconds an engine's clock is ahead of the process's; null while nobody can say. */
export type ClockOffsets = { redis: number | null; mysql: number | null };

/** The heartbeat of one process; times in ms since the epoch by the clock of the process. */
export type Pulse = {
  /** Name, host and pid: one process. Also the label `process` of its metrics. */
  id: string;
  name: string;
  pid: number;
  host: string;
  version: string;
  startedAt: number;
  /** When this was said. */
  at: number;
  rssBytes: number;
  heapUsedBytes: number;
  /** Share of a processor core since the last beat: 1 is a core that never rests. */
  cpu: number;
  /** How late the event loop ran, 99th percentile since the last beat, ms. */
  eventLoopP99Ms: number;
  /** Whether the connections to the engines stand; of MySQL, whether it answered when it was last asked. */
  connected: { redis: boolean; rabbitmq: boolean; mysql: boolean };
  doing: Doing;
  clockOffsets: ClockOffsets;
  /** Requests came with X-Forwarded-For, which is not believed because TRUSTED_PROXIES is not set. */
  forwardedIgnored?: boolean;
  metrics: MetricJson[];
};

/** A pulse as it is found: `lost` when the process has been silent for longer than three beats. */
export type SeenPulse = Pulse & { state: 'alive' | 'lost'; silentMs: number };

export const beatMs = 2_000;
/** Three beats and a little: one that is late is not a death. */
const aliveMs = 3 * beatMs + 500;
/** How long a process that fell silent is still shown. */
export const shownMs = 10 * 60_000;

export const processId = (name: string, host: string, pid: number): string =>
  `${name}@${host}:${pid}`;

/** `heardAt` and `now` are both by the clock of Redis. */
export const judge = (pulse: Pulse, heardAt: number, now: number): SeenPulse => {
  const silentMs = Math.max(0, now - heardAt);
  return { ...pulse, state: silentMs <= aliveMs ? 'alive' : 'lost', silentMs };
};

/** The offset of a clock that said `said` somewhere between `askedAt` and `answeredAt`. */
export const offsetOf = (said: number, askedAt: number, answeredAt: number): number =>
  Math.round(said - (askedAt + answeredAt) / 2);
