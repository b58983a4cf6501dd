// MySQL, Redis and RabbitMQ: whether they answer, how old they are, how they are set, and what time it is there.
import { createMysql } from '../infra/mysql.ts';
import { lookAtBroker } from '../infra/queue/look.ts';
import { againQueue, deadQueue } from '../infra/queue/topology.ts';
import { closeRedis, createRedis, type RedisClient, redisReady } from '../infra/redis.ts';
import { jobs } from '../jobs.ts';
import type { Clock } from '../kernel/clock.ts';
import { hour } from '../kernel/clock.ts';
import type { Config } from '../kernel/config.ts';
import { silentLog } from '../kernel/log.ts';
import { describeError } from '../kernel/redact.ts';
import {
  type Finding,
  findingsOf,
  judgeJob,
  judgeRedis,
  judgeSkew,
  judgeVersion,
} from './rules.ts';
import { createDoctorStore, type DoctorStore } from './store.ts';

const { ok, error } = findingsOf('Engines');
const webhooks = findingsOf('Webhooks');

const patienceMs = 5_000;

const away = (engine: string, variable: string, problem: unknown): Finding =>
  error(
    'engine.away',
    `${engine} cannot be used: ${describeError(problem)}.`,
    `See whether it runs, and whether ${variable} has its address, user and password right.`,
  );

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
      ? [webhooks.ok('webhooks.taken', `${all} endpoints of customers, none failing.`)]
      : []),
  ];
};

/** MySQL, its schema and its clock, and what it knows of customers' endpoints. */
export const examineMysql = async (
  config: Config,
  clock: Clock,
  migrations: readonly string[],
): Promise<Finding[]> => {
  const db = createMysql({ url: config.mysqlUrl, pool: 1 });
  const store = createDoctorStore(db);
  try {
    const version = await store.version();
    const schema = judgeSchema(await store.migrations(), migrations);
    return [
      judgeVersion(/mariadb/i.test(version) ? 'MariaDB' : 'MySQL', version),
      schema,
      await skewOf('MySQL', clock, store.now),
      ...(schema.level === 'ok' ? await endpointFindings(store, clock) : []),
    ];
  } catch (problem) {
    return [away('MySQL', 'MYSQL_URL', problem)];
  } finally {
    await db.destroy();
  }
};

const redisTime = async (redis: RedisClient): Promise<number> => {
  const [seconds, micros] = (await redis.call('TIME')) as [string, string];
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
};

/** Redis, its version and settings, and its clock; of a Cluster one node. */
export const examineRedis = async (config: Config, clock: Clock): Promise<Finding[]> => {
  const redis = createRedis({ url: config.redisUrl, log: silentLog, name: 'doctor' });
  try {
    await redisReady(redis, patienceMs);
    return [
      ...judgeRedis(await redis.info()),
      await skewOf('Redis', clock, () => redisTime(redis)),
    ];
  } catch (problem) {
    return [away('Redis', 'REDIS_URL', problem)];
  } finally {
    await closeRedis(redis);
  }
};

/** RabbitMQ and every queue there should be. */
export const examineBroker = async (config: Config): Promise<Finding[]> => {
  const urls = config.amqpUrls.split(',').filter(Boolean);
  try {
    const broker = await lookAtBroker(urls, 'doctor');
    try {
      const found: Finding[] = [judgeVersion('RabbitMQ', broker.version)];
      for (const { name } of jobs) {
        const fresh = await broker.queue(name);
        const again = await broker.queue(againQueue(name));
        const dead = await broker.queue(deadQueue(name));
        found.push(...judgeJob(name, { fresh, again, dead }));
      }
      return found;
    } finally {
      await broker.close();
    }
  } catch (problem) {
    return [away('RabbitMQ', 'AMQP_URL', problem)];
  }
};
