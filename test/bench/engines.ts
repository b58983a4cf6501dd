// The benchmark's own places inside the engines: two databases, two virtual hosts and a key prefix, all gone at the end.
import { randomBytes } from 'node:crypto';
import { connect } from 'amqplib';
import mysql from 'mysql2/promise';
import type { Database } from '../../lib/infra/mysql.ts';
import type { RedisClient } from '../../lib/infra/redis.ts';
import { createDatabase } from '../support/databases.ts';
import { testUrl } from '../support/names.ts';
import { createVhost } from '../support/vhosts.ts';
import type { EngineVersions } from './result.ts';
import { listenerOn } from './usage.ts';

const bareTable = `CREATE TABLE bare_messages (
  id BINARY(16) NOT NULL,
  phone VARCHAR(16) CHARACTER SET ascii NOT NULL,
  wamid VARCHAR(128) CHARACTER SET ascii NOT NULL,
  sent_at BIGINT UNSIGNED NOT NULL,
  PRIMARY KEY (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`;

export type Places = {
  product: { mysql: string; redis: string; amqp: string; prefix: string };
  bare: { mysql: string; redis: string; amqp: string; prefix: string };
  /** Deletes them all, keys of Redis excepted. */
  drop(): Promise<void>;
};

/** Makes the places; the product's database is empty, the bare pipeline's has its table. */
export const makePlaces = async (): Promise<Places> => {
  const made = [
    await createDatabase('bench'),
    await createDatabase('bench_bare'),
    await createVhost('bench'),
    await createVhost('bench_bare'),
  ] as const;
  const [database, bareDatabase, vhost, bareVhost] = made;
  const connection = await mysql.createConnection(bareDatabase.url);
  await connection.query(bareTable);
  await connection.end();
  const redis = testUrl('TESSERA_TEST_REDIS_URL').href;
  const mark = `bench-${randomBytes(4).toString('hex')}`;
  return {
    product: { mysql: database.url, amqp: vhost.url, redis, prefix: `${mark}:` },
    bare: { mysql: bareDatabase.url, amqp: bareVhost.url, redis, prefix: `${mark}-bare:` },
    drop: async () => {
      await Promise.all(made.map((one) => one.drop()));
    },
  };
};

const keysPerScan = 5_000;

/** Deletes every key under the prefixes, on a single server. */
export const deleteKeys = async (
  redis: RedisClient,
  prefixes: readonly string[],
): Promise<void> => {
  for (const prefix of prefixes) {
    let cursor = '0';
    do {
      const [next, keys] = await redis.scan(cursor, 'MATCH', `${prefix}*`, 'COUNT', keysPerScan);
      if (keys.length > 0) await redis.unlink(...keys);
      cursor = next;
    } while (cursor !== '0');
  }
};

/** Pids of the engines that run on this machine; others are left out. */
export const enginePids = (): Record<string, number> => {
  const found = (name: string, variable: string, standard: number): [string, number][] => {
    const { hostname, port } = testUrl(variable);
    if (!['127.0.0.1', 'localhost', '[::1]'].includes(hostname)) return [];
    const pid = listenerOn(Number(port || standard));
    return pid === undefined ? [] : [[name, pid]];
  };
  return Object.fromEntries([
    ...found('rabbitmq', 'TESSERA_TEST_AMQP_URL', 5672),
    ...found('mysql', 'TESSERA_TEST_MYSQL_URL', 3306),
    ...found('redis', 'TESSERA_TEST_REDIS_URL', 6379),
  ]);
};

/** What the engines call themselves. */
export const engineVersions = async (
  db: Database,
  redis: RedisClient,
  amqpUrl: string,
): Promise<EngineVersions> => {
  const [[row]] = (await db.raw('SELECT VERSION() AS version')) as [{ version: string }[]];
  const version = row?.version ?? '';
  const server = /redis_version:(\S+)/.exec(await redis.info('server'))?.[1] ?? 'unknown';
  const broker = await connect(amqpUrl);
  const { version: rabbitmq } = broker.connection.serverProperties as { version?: string };
  await broker.close();
  return {
    rabbitmq: rabbitmq ?? 'unknown',
    mysql: version.includes('MariaDB') ? `MariaDB ${version.split('-')[0]}` : `MySQL ${version}`,
    redis: server,
  };
};
