// The heart of a process: every two seconds it says what the process is and does, beside all other work.
import { hostname } from 'node:os';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Registry } from 'prom-client';
import type { Broker } from '../infra/queue/broker.ts';
import type { RedisClient } from '../infra/redis.ts';
import { type Chore, repeat } from '../kernel/chore.ts';
import { type Clock, minute } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import type { AliveFile } from './alive-file.ts';
import type { Vitals } from './engines.ts';
import {
  beatMs,
  type ClockOffsets,
  type MetricJson,
  offsetOf,
  type Pulse,
  processId,
  type SeenPulse,
} from './rules.ts';
import type { PulseStore } from './store.ts';

export type HeartDeps = {
  name: string;
  version: string;
  registry: Pick<Registry, 'getMetricsAsJSON'>;
  pulses: PulseStore;
  broker: Pick<Broker, 'inHand' | 'handled' | 'ready'>;
  redis: Pick<RedisClient, 'isReady'>;
  /** Requests that are not answered yet. */
  requests(): number;
  /** Whether X-Forwarded-For was seen and ignored since the process started. */
  forwardedIgnored(): boolean;
  alive: AliveFile;
  clock: Clock;
  log: Log;
};

/** The sampler's own period: what it measures is this long when nothing is late. */
const loopSampleMs = 20;
/** MySQL is asked for its time more rarely, as long as it answers: each time costs a query. */
const mysqlEveryMs = minute / 2;
/** An answer that was longer under way says nothing of a clock: it was late, or this process was. */
const promptMs = 500;

/** What has to be compared with the beat before. */
const createMeters = () => {
  const loop = monitorEventLoopDelay({ resolution: loopSampleMs });
  loop.enable();
  let cpuBefore = process.cpuUsage();
  let askedAt = performance.now();
  return {
    read: () => {
      const now = performance.now();
      const used = process.cpuUsage(cpuBefore);
      const cpu = (used.user + used.system) / 1000 / Math.max(1, now - askedAt);
      const p99 = Math.max(0, loop.percentile(99) / 1e6 - loopSampleMs);
      cpuBefore = process.cpuUsage();
      askedAt = now;
      loop.reset();
      return { cpu: Math.round(cpu * 1000) / 1000, eventLoopP99Ms: Math.round(p99 * 10) / 10 };
    },
    stop: () => loop.disable(),
  };
};

export type Heart = Chore & {
  /** What was last measured. */
  vitals(): Vitals;
  /** This process alone, as it is now: what is left to say while Redis is away. */
  own(): Promise<SeenPulse[]>;
};

/** Compares the clocks of the engines with this one, and notes in `vitals` what came of it. */
const createClocks = (pulses: Pick<PulseStore, 'mysqlNow'>, vitals: Vitals) => {
  const { clockOffsets } = vitals;
  let mysqlAskedAt = Number.NEGATIVE_INFINITY;
  let asking: Promise<void> | undefined;

  /** Notes the offset of the engine that answers `ask`, and answers whether it did. */
  const compare = async (engine: keyof ClockOffsets, ask: () => Promise<number>) => {
    const askedAt = Date.now();
    try {
      const said = await ask();
      const answeredAt = Date.now();
      if (answeredAt - askedAt <= promptMs) {
        clockOffsets[engine] = offsetOf(said, askedAt, answeredAt);
      }
      return true;
    } catch {
      clockOffsets[engine] = null;
      return false;
    }
  };

  /** One question at a time; again at once while nobody answers. */
  const askMysql = (): Promise<void> | undefined => {
    const rests = performance.now() - mysqlAskedAt < mysqlEveryMs;
    if (asking || (rests && vitals.mysqlConnected)) return undefined;
    mysqlAskedAt = performance.now();
    asking = compare('mysql', pulses.mysqlNow).then((answered) => {
      vitals.mysqlConnected = answered;
      asking = undefined;
    });
    return asking;
  };

  return { compare, askMysql };
};

/** Beats once at the start and then every two seconds; an engine that is away costs a beat and nothing else. */
export const createHeart = (deps: HeartDeps): Heart => {
  const { name, version, registry, pulses, broker, redis, requests, alive, clock, log } = deps;
  const { pid } = process;
  const host = hostname();
  const id = processId(name, host, pid);
  const startedAt = clock.now();
  const clockOffsets: ClockOffsets = { redis: null, mysql: null };
  const vitals: Vitals = {
    ...{ eventLoopP99Ms: 0, rssBytes: 0, heapUsedBytes: 0, requests: 0, clockOffsets },
    mysqlConnected: false,
  };
  const meters = createMeters();
  const { compare, askMysql } = createClocks(pulses, vitals);

  const pulse = async (): Promise<Pulse> => {
    const { rss: rssBytes, heapUsed: heapUsedBytes } = process.memoryUsage();
    const { cpu, eventLoopP99Ms } = meters.read();
    // Before the metrics are read, which report them too.
    Object.assign(vitals, { rssBytes, heapUsedBytes, eventLoopP99Ms, requests: requests() });
    return {
      ...{ id, name, pid, host, version, startedAt, at: clock.now() },
      ...{ rssBytes, heapUsedBytes, cpu, eventLoopP99Ms, clockOffsets },
      connected: {
        ...{ redis: redis.isReady(), rabbitmq: broker.ready() },
        mysql: vitals.mysqlConnected,
      },
      forwardedIgnored: deps.forwardedIgnored(),
      doing: { requests: vitals.requests, jobs: broker.inHand(), handled: broker.handled() },
      metrics: (await registry.getMetricsAsJSON()) as unknown as MetricJson[],
    };
  };

  const beat = async (): Promise<void> => {
    // Not waited for: a database that keeps silent must not silence this process too.
    void askMysql();
    await alive.say(redis.isReady() && broker.ready());
    const said = await pulse();
    await compare('redis', () => pulses.beat(said));
  };

  /** The first word knows of MySQL already. */
  const begin = async (): Promise<void> => {
    await askMysql();
    await beat();
  };

  const chore = repeat(beat, beatMs, log);
  return {
    vitals: () => vitals,
    own: async () => [{ ...(await pulse()), state: 'alive', silentMs: 0 }],
    start: () => {
      void begin().catch(() => undefined);
      chore.start();
    },
    stop: async () => {
      await chore.stop();
      meters.stop();
      await alive.end();
      await pulses.leave(id).catch(() => undefined);
    },
  };
};
