// Redis for tests: a client with keys of its own on the shared server, and private servers that a test may ill-treat.
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Cluster } from 'ioredis';
import { closeRedis, createRedis, type RedisClient, redisReady } from '../../lib/infra/redis.ts';
import { silentLog } from '../../lib/kernel/log.ts';
import { testUrl } from './names.ts';

/** Repeats `check` until it holds; throws after `timeoutMs`. */
export const until = async (
  check: () => boolean | Promise<boolean>,
  timeoutMs = 30_000,
): Promise<void> => {
  const end = Date.now() + timeoutMs;
  while (!(await check())) {
    if (Date.now() > end) throw new Error(`still not so after ${timeoutMs} ms`);
    await delay(10);
  }
};

/** A ready client of `url` that keeps quiet. */
export const connectTo = async (
  url: string,
  settings: { commandTimeoutMs?: number } = {},
): Promise<RedisClient> => {
  const redis = createRedis({ url, log: silentLog, commandTimeoutMs: 5_000, ...settings });
  await redisReady(redis, 10_000);
  return redis;
};

export type TestRedis = { redis: RedisClient; prefix: string; close(): Promise<void> };

/** All keys under `prefix` (no wildcards in it), of every node, sorted. */
export const keysUnder = async (redis: RedisClient, prefix: string): Promise<string[]> => {
  const nodes = redis instanceof Cluster ? redis.nodes('master') : [redis];
  const found = await Promise.all(nodes.map((node) => node.keys(`${prefix}*`)));
  return found.flat().toSorted();
};

/** What every key under `prefix` holds, without times to live: equal before and after means nothing was written. */
export const contentsUnder = async (
  redis: RedisClient,
  prefix: string,
): Promise<Record<string, string>> => {
  const keys = await keysUnder(redis, prefix);
  const dumps = await Promise.all(keys.map((key) => redis.dumpBuffer(key)));
  return Object.fromEntries(
    keys.map((key, index) => [key, dumps[index]?.toString('base64') ?? '']),
  );
};

/**
 * The shared test server (TESSERA_TEST_REDIS_URL), in its last database and under a prefix nobody else has. The
 * database is another than the address names, so that listing keys takes no longer the more other tests leave there.
 */
export const openTestRedis = async (): Promise<TestRedis> => {
  const url = testUrl('TESSERA_TEST_REDIS_URL');
  url.pathname = '/15';
  const redis = await connectTo(url.href);
  const prefix = `test-${randomBytes(6).toString('hex')}:`;
  return {
    redis,
    prefix,
    close: async () => {
      for (const key of await keysUnder(redis, prefix)) await redis.del(key);
      await closeRedis(redis);
    },
  };
};

/** A TCP port of this machine that nobody listens on. */
export const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
};

export type RedisServer = {
  url: string;
  port: number;
  pid: number;
  /** Ends the process at once, as a crash would. */
  kill(): Promise<void>;
  /** Starts it again on the same port, empty. */
  restart(): Promise<void>;
  /** Ends it and removes its directory. */
  stop(): Promise<void>;
};

/** Starts a private server on a free port, nothing kept on disk; `args` are added to its command line. */
export const startRedisServer = async (args: readonly string[] = []): Promise<RedisServer> => {
  const port = await freePort();
  const directory = await mkdtemp(join(tmpdir(), 'tessera-redis-'));
  const url = `redis://127.0.0.1:${port}`;
  let child: ChildProcess | undefined;

  const start = async (): Promise<void> => {
    const fixed = ['--port', String(port), '--bind', '127.0.0.1', '--dir', directory];
    const memoryOnly = ['--save', '', '--appendonly', 'no'];
    child = spawn('redis-server', [...fixed, ...memoryOnly, ...args], { stdio: 'ignore' });
    await once(child, 'spawn');
    await closeRedis(await connectTo(url));
  };
  const kill = async (): Promise<void> => {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  };

  await start();
  return {
    url,
    port,
    get pid() {
      return child?.pid ?? 0;
    },
    kill,
    restart: start,
    stop: async () => {
      await kill();
      await rm(directory, { recursive: true, force: true });
    },
  };
};
