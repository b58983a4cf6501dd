// Metrics that others keep already: the broker's counters, the pool of MySQL, the process itself. Read, never counted.
import type { Registry } from 'prom-client';
import type { Database } from '../infra/mysql.ts';
import type { Broker } from '../infra/queue/broker.ts';
import type { RedisClient } from '../infra/redis.ts';
import { jobs } from '../jobs.ts';
import { readCounter, readGauge, type Sample } from './family.ts';
import type { ClockOffsets } from './rules.ts';

type BrokerReader = Pick<Broker, 'inHand' | 'ready' | 'stats'>;

const none: readonly string[] = [];
const seconds = (ms: number | null): number | null => (ms === null ? null : ms / 1000);

/** One sample per job this process knows of: 0 for those it consumes and that have none. */
const perJob = (broker: BrokerReader, kind: string): Sample[] => {
  const stats = broker.stats();
  const consumed = broker.inHand();
  return jobs.flatMap(({ name }) => {
    const count = stats[`${name}.${kind}`];
    return count === undefined && !(name in consumed)
      ? []
      : [{ labels: { queue: name }, value: count ?? 0 }];
  });
};

const queueMetrics = (registry: Registry, broker: BrokerReader): void => {
  const counter = (name: string, help: string, labels: readonly string[], read: () => Sample[]) =>
    readCounter({ registry, name, help, labels }, read);
  const total = (name: string) => () => [{ value: broker.stats()[name] ?? 0 }];
  const of = (label: string, names: readonly string[]) => () =>
    names.map((name) => ({ labels: { [label]: name }, value: broker.stats()[name] ?? 0 }));

  counter('tessera_publishes_total', 'Jobs that the broker confirmed.', ['queue'], () =>
    perJob(broker, 'published'),
  );
  counter('tessera_jobs_total', 'Jobs that were done.', ['queue'], () => perJob(broker, 'done'));
  counter('tessera_retries_total', 'Jobs that were given another attempt.', ['queue'], () =>
    perJob(broker, 'retry'),
  );
  counter('tessera_dead_total', 'Jobs that were given up.', ['queue'], () =>
    perJob(broker, 'dead'),
  );
  counter(
    'tessera_broker_publishes_total',
    'Messages by what the broker said: published, returned, nacked, unknown, refused.',
    ['outcome'],
    of('outcome', ['published', 'returned', 'nacked', 'unknown', 'refused']),
  );
  counter(
    'tessera_replies_lost_total',
    'Answers to a waiting process that found nobody.',
    none,
    total('replyLost'),
  );
  readGauge(
    {
      ...{ registry, name: 'tessera_jobs_in_hand', labels: ['queue'] },
      help: 'Jobs that a process works on.',
    },
    () => Object.entries(broker.inHand()).map(([queue, value]) => ({ labels: { queue }, value })),
  );
};

type Pool = {
  numUsed(): number;
  numFree(): number;
  numPendingAcquires(): number;
  on(event: 'createFail', listener: () => void): void;
};

// knex says nothing of its pool's type.
const poolOf = (db: Database): Pool | undefined => (db.client as { pool?: Pool }).pool;

const poolMetrics = (registry: Registry, db: Database): void => {
  readGauge(
    {
      ...{ registry, name: 'tessera_mysql_pool_connections', labels: ['state'] },
      help: 'Connections to MySQL: used, free, and calls that wait for one.',
    },
    () => {
      const open = poolOf(db);
      if (!open) return [];
      return [
        { labels: { state: 'used' }, value: open.numUsed() },
        { labels: { state: 'free' }, value: open.numFree() },
        { labels: { state: 'waiting' }, value: open.numPendingAcquires() },
      ];
    },
  );
};

/** What the heart measures anyway. */
export type Vitals = {
  eventLoopP99Ms: number;
  rssBytes: number;
  heapUsedBytes: number;
  requests: number;
  clockOffsets: ClockOffsets;
  mysqlConnected: boolean;
};

const processMetrics = (registry: Registry, vitals: () => Vitals): void => {
  const gauge = (name: string, help: string, read: (now: Vitals) => number | null): void =>
    readGauge({ registry, name, help, labels: none }, () => [{ value: read(vitals()) }]);
  gauge(
    'tessera_event_loop_delay_p99_seconds',
    'How late the event loop ran in the last two seconds.',
    ({ eventLoopP99Ms }) => eventLoopP99Ms / 1000,
  );
  gauge('tessera_resident_memory_bytes', 'Resident memory.', ({ rssBytes }) => rssBytes);
  gauge('tessera_heap_used_bytes', 'Heap in use.', ({ heapUsedBytes }) => heapUsedBytes);
  gauge(
    'tessera_http_requests_in_flight',
    'Requests that are not answered yet.',
    ({ requests }) => requests,
  );
  readGauge(
    {
      ...{ registry, name: 'tessera_clock_offset_seconds', labels: ['engine'] },
      help: 'How far the clock of an engine is ahead of the clock of the process.',
    },
    () => {
      const { redis, mysql } = vitals().clockOffsets;
      return [
        { labels: { engine: 'redis' }, value: seconds(redis) },
        { labels: { engine: 'mysql' }, value: seconds(mysql) },
      ];
    },
  );
  readCounter(
    {
      ...{ registry, name: 'tessera_cpu_seconds_total', labels: none },
      help: 'Processor time used.',
    },
    () => {
      const { user, system } = process.cpuUsage();
      return [{ value: (user + system) / 1e6 }];
    },
  );
};

/** What only happens when something is wrong may be counted where it happens. */
const countLosses = (redis: Pick<RedisClient, 'on'>, db: Database) => {
  const lost = { redis: 0, mysql: 0 };
  let open = false;
  redis.on('ready', () => {
    open = true;
  });
  redis.on('close', () => {
    if (open) lost.redis++;
    open = false;
  });
  poolOf(db)?.on('createFail', () => {
    lost.mysql++;
  });
  return lost;
};

/** Adds to `registry` what the sockets and the process know of themselves. */
export const watchEngines = (deps: {
  registry: Registry;
  broker: BrokerReader;
  redis: Pick<RedisClient, 'isReady' | 'on'>;
  db: Database;
  vitals(): Vitals;
}): void => {
  const { registry, broker, redis, db, vitals } = deps;
  queueMetrics(registry, broker);
  poolMetrics(registry, db);
  processMetrics(registry, vitals);
  const lost = countLosses(redis, db);
  readCounter(
    {
      ...{ registry, name: 'tessera_outages_total', labels: ['engine'] },
      help: 'Connections to an engine that were lost or could not be made.',
    },
    () => [
      { labels: { engine: 'redis' }, value: lost.redis },
      { labels: { engine: 'mysql' }, value: lost.mysql },
      { labels: { engine: 'rabbitmq' }, value: broker.stats().reconnects ?? 0 },
    ],
  );
  readGauge(
    {
      ...{ registry, name: 'tessera_engine_connected', labels: ['engine'] },
      help: '1 while the process is connected to an engine; of MySQL, whether it answered last.',
    },
    () => [
      { labels: { engine: 'redis' }, value: Number(redis.isReady()) },
      { labels: { engine: 'rabbitmq' }, value: Number(broker.ready()) },
      { labels: { engine: 'mysql' }, value: Number(vitals().mysqlConnected) },
    ],
  );
};
