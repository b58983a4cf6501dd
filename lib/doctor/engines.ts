// MySQL, Redis and RabbitMQ: whether they answer, how old they are, how they are set, and what time it is there.
import type { Http } from '../infra/http.ts';
import { createManagement } from '../infra/management.ts';
import { createMysql, type Database } from '../infra/mysql.ts';
import { lookAtBroker } from '../infra/queue/look.ts';
import { againQueue, deadQueue } from '../infra/queue/topology.ts';
import { closeRedis, createRedis, type RedisClient, redisReady } from '../infra/redis.ts';
import { jobs } from '../jobs.ts';
import type { Clock } from '../kernel/clock.ts';
import { hour } from '../kernel/clock.ts';
import type { Config } from '../kernel/config.ts';
import { silentLog } from '../kernel/log.ts';
import type { SeenPulse } from '../pulse/rules.ts';
import { createPulseReader } from '../pulse/store.ts';
import { explainAway } from './away.ts';
import {
  type Finding,
  findingsOf,
  judgeJob,
  judgeRedis,
  judgeSkew,
  judgeVersion,
  plural,
} from './rules.ts';
import { createDoctorStore, type DoctorStore } from './store.ts';

const { ok, warning, error } = findingsOf('Engines');
const webhooks = findingsOf('Webhooks');
const settingsFindings = findingsOf('Settings');

const patienceMs = 5_000;

/** The other's clock against ours; half of what the question took is uncertain. */
const skewOf = async (
  whose: string,
  clock: Clock,
  ask: () => Promise<number>,
): Promise<Finding> => {
  const before = clock.now();
  const theirs = await ask();
  const after = clock.now();
  return judgeSkew(whose, (before + after) / 2 - theirs, (after - before) / 2);
};

const judgeSchema = (done: readonly string[], known: readonly string[]): Finding => {
  const missing = known.filter((name) => !done.includes(name));
  if (missing.length === 0) return ok('schema.current', 'The schema is that of this release.');
  const text = `${missing.length} migration${missing.length === 1 ? ' has' : 's have'} not run: ${missing[0]} …`;
  return error('schema.old', text, 'Run npm run migrate.');
};

const endpointFindings = async (store: DoctorStore, clock: Clock): Promise<Finding[]> => {
  const { all, givenUp, failing } = await store.endpoints(clock.now() - hour);
  const advice =
    'Their owners see why under GET /v1/clients/webhooks/deliveries; setting the address again starts anew.';
  return [
    ...(givenUp > 0
      ? [
          webhooks.warning(
            'webhooks.given_up',
            `${givenUp} of ${all} endpoints of customers are given up.`,
            advice,
          ),
        ]
      : []),
    ...(failing > 0
      ? [
          webhooks.warning(
            'webhooks.failing',
            `${failing} of ${all} endpoints of customers have taken nothing for an hour.`,
            advice,
          ),
        ]
      : []),
    ...(givenUp + failing === 0
      ? [webhooks.ok('webhooks.taken', `${plural(all, 'endpoint')} of customers, none failing.`)]
      : []),
  ];
};

/** MySQL, its schema and its clock, and what it knows of customers' endpoints. */
export const examineMysql = async (
  config: Config,
  clock: Clock,
  migrations: readonly string[],
): Promise<Finding[]> => {
  let db: Database | undefined;
  try {
    db = createMysql({ url: config.mysqlUrl, pool: 1 });
    const store = createDoctorStore(db);
    const version = await store.version();
    const schema = judgeSchema(await store.migrations(), migrations);
    return [
      judgeVersion(/mariadb/i.test(version) ? 'MariaDB' : 'MySQL', version),
      schema,
      await skewOf('MySQL', clock, store.now),
      ...(schema.level === 'ok' ? await endpointFindings(store, clock) : []),
    ];
  } catch (problem) {
    const away = { engine: 'MySQL', variable: 'MYSQL_URL', url: config.mysqlUrl } as const;
    return [explainAway(away, problem)];
  } finally {
    await db?.destroy();
  }
};

const redisTime = async (redis: RedisClient): Promise<number> => {
  const [seconds, micros] = (await redis.call('TIME')) as [string, string];
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
};

/** What the running processes saw of a proxy that the settings do not know. */
const judgeForwarded = (pulses: readonly SeenPulse[]): Finding[] =>
  pulses
    .filter(({ state, forwardedIgnored }) => state === 'alive' && forwardedIgnored)
    .map(({ id }) => {
      const text = `${id} gets requests with X-Forwarded-For, but TRUSTED_PROXIES is not set: all callers count as one address, and share its limits.`;
      const advice =
        'Set TRUSTED_PROXIES to how many proxies add to X-Forwarded-For; 0 when none does.';
      return settingsFindings.warning('settings.forwarded', text, advice);
    });

/** Redis, its version and settings, and its clock; of a Cluster one node. */
export const examineRedis = async (config: Config, clock: Clock): Promise<Finding[]> => {
  const redis = createRedis({ url: config.redisUrl, log: silentLog, name: 'doctor' });
  const failed = new Promise<never>((_, reject) => {
    // Of a Cluster others may answer; a single one has said all there is to say.
    if (!redis.isCluster) redis.once('error', reject);
  });
  try {
    await Promise.race([redisReady(redis, patienceMs), failed]);
    return [
      ...judgeRedis(await redis.info()),
      await skewOf('Redis', clock, () => redisTime(redis)),
      ...judgeForwarded(await createPulseReader(redis, config.keyPrefix).readPulses()),
    ];
  } catch (problem) {
    const away = { engine: 'Redis', variable: 'REDIS_URL', url: config.redisUrl } as const;
    return [explainAway(away, problem)];
  } finally {
    await closeRedis(redis);
  }
};

/** The management API, from which the console has what only the broker knows. */
const examineManagement = async (config: Config, http: Http): Promise<Finding[]> => {
  const { brokerManagementUrl: url, amqpUrls } = config;
  if (url === '') return [];
  const [amqpUrl = ''] = amqpUrls.split(',');
  try {
    await createManagement({ http, url, amqpUrl }).queues();
    return [ok('management.answers', 'The management API of RabbitMQ answers.')];
  } catch {
    const text =
      'The management API of RabbitMQ does not answer: console and metrics show no unacknowledged messages.';
    return [
      warning('management.away', text, 'Correct RABBITMQ_MANAGEMENT_URL, user and password, too.'),
    ];
  }
};

/** RabbitMQ and every queue there should be. */
export const examineBroker = async (config: Config, http: Http): Promise<Finding[]> => {
  const urls = config.amqpUrls.split(',').filter(Boolean);
  try {
    const broker = await lookAtBroker(urls, 'doctor');
    try {
      const found: Finding[] = [
        judgeVersion('RabbitMQ', broker.version),
        ...(await examineManagement(config, http)),
      ];
      for (const { name } of jobs) {
        const names = { fresh: name, again: againQueue(name), dead: deadQueue(name) };
        const [fresh, again, dead] = [
          await broker.queue(names.fresh),
          await broker.queue(names.again),
          await broker.queue(names.dead),
        ];
        found.push(...judgeJob(name, { fresh, again, dead }, names));
      }
      return found;
    } finally {
      await broker.close();
    }
  } catch (problem) {
    const away = { engine: 'RabbitMQ', variable: 'AMQP_URL', url: config.amqpUrls } as const;
    return [explainAway(away, problem)];
  }
};
