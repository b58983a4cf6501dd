// The Redis client through outages: every failure is RedisUnavailable, quickly, and nothing runs twice.
import test, { type ExecutionContext } from 'ava';
import { Redis } from 'ioredis';
import {
  closeRedis,
  createRedis,
  type RedisClient,
  type RedisSettings,
  RedisUnavailable,
  reconnectDelayMs,
  redisReady,
} from '../../lib/infra/redis.ts';
import { defineScript } from '../../lib/infra/redis-script.ts';
import { type Log, silentLog } from '../../lib/kernel/log.ts';
import { type RedisServer, startRedisServer, until } from '../support/redis-server.ts';

const serve = async (t: ExecutionContext): Promise<RedisServer> => {
  const server = await startRedisServer();
  t.teardown(() => server.stop());
  return server;
};

const create = (t: ExecutionContext, settings: RedisSettings): RedisClient => {
  const redis = createRedis({ connectTimeoutMs: 500, ...settings });
  t.teardown(() => closeRedis(redis));
  return redis;
};

const open = async (t: ExecutionContext, url: string, timeoutMs = 5_000): Promise<RedisClient> => {
  const redis = create(t, { url, log: silentLog, commandTimeoutMs: timeoutMs });
  await redisReady(redis, 5_000);
  return redis;
};

// Nobody listens on port 1.
const nowhere = 'redis://127.0.0.1:1';

// At once, with room for a busy machine; the command timeout is 5,000 where this is used.
const promptMs = 2_000;

/** How long `call` took to fail with RedisUnavailable, in ms. */
const failureMs = async (call: () => Promise<unknown>): Promise<number> => {
  const start = performance.now();
  const error = await call().then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof RedisUnavailable)) throw new Error(`not unavailable but ${String(error)}`);
  return performance.now() - start;
};

test('before it is connected a command fails at once, and redisReady says when it will not', async (t) => {
  const redis = create(t, { url: nowhere, log: silentLog, commandTimeoutMs: 5_000 });
  t.false(redis.isReady());
  t.true((await failureMs(() => redis.get('x'))) < promptMs);
  await t.throwsAsync(redisReady(redis, 50), { instanceOf: RedisUnavailable });
});

test('nothing is queued until a connection stands', async (t) => {
  const server = await serve(t);
  const redis = create(t, { url: server.url, log: silentLog, commandTimeoutMs: 5_000 });
  await failureMs(() => redis.incr('count'));
  await redisReady(redis, 5_000);
  t.is(await redis.get('count'), null);
});

test('a crash fails what is in flight and what follows; nothing is sent again when the server is back', async (t) => {
  const server = await serve(t);
  const redis = await open(t, server.url, 5_000);
  process.kill(server.pid, 'SIGSTOP');
  const counted = failureMs(() => redis.incr('count'));
  // Written to the socket and unanswered.
  await until(() => redis instanceof Redis && redis.commandQueue.length === 1);
  await server.kill();
  t.true((await counted) < promptMs, 'the close ended it, not the timeout');
  await until(() => !redis.isReady());
  t.true((await failureMs(() => redis.get('count'))) < promptMs);
  await server.restart();
  await until(() => redis.isReady());
  t.is(await redis.get('count'), null);
});

test('a server that falls silent costs a bounded time, is given up and found again', async (t) => {
  const server = await serve(t);
  const redis = await open(t, server.url, 200);
  process.kill(server.pid, 'SIGSTOP');
  const first = await failureMs(() => redis.get('x'));
  t.true(first >= 190 && first < promptMs, `${first} ms`);
  const many = await Promise.all(
    Array.from({ length: 50 }, () => failureMs(() => redis.set('x', '1'))),
  );
  t.true(Math.max(...many) < promptMs);
  // Four timeouts of silence and the connection itself is dropped, so that commands fail at once.
  await until(async () => {
    if (redis.isReady()) await redis.get('x').catch(() => undefined);
    return !redis.isReady();
  });
  await failureMs(() => redis.get('x'));
  process.kill(server.pid, 'SIGCONT');
  await until(() => redis.isReady());
  t.is(await redis.set('x', '2'), 'OK');
});

test('a server that cannot write is unavailable; a mistake of ours is not', async (t) => {
  const server = await serve(t);
  const redis = await open(t, server.url, 2_000);
  const write = defineScript<string>(redis, {
    name: 'testWrite',
    lua: `redis.call('SET', KEYS[1], ARGV[1]) return 'done'`,
    keys: 1,
  });
  t.is(await write(['k'], ['1']), 'done');

  const mistake = await t.throwsAsync(redis.lpush('k', 'x'));
  t.false(mistake instanceof RedisUnavailable);
  t.regex(mistake?.message ?? '', /WRONGTYPE/);

  await redis.config('SET', 'maxmemory', '1');
  await failureMs(() => redis.set('k', '2'));
  await failureMs(() => write(['k'], ['2']));
  await redis.config('SET', 'maxmemory', '0');

  await redis.replicaof('127.0.0.1', 1);
  await failureMs(() => redis.set('k', '3'));
});

test('a script that meets a demoted master leaves it, as a plain command does', async (t) => {
  const server = await serve(t);
  const redis = await open(t, server.url, 2_000);
  const write = defineScript<string>(redis, {
    ...{ name: 'testLeave', lua: `return redis.call('INCR', KEYS[1])`, keys: 1 },
  });
  await redis.replicaof('127.0.0.1', 1);
  const closed = new Promise((resolve) => redis.once('close', resolve));
  await failureMs(() => write(['k'], []));
  await closed;
  await until(() => redis.isReady());
  t.pass();
});

test('the commands of an explicit pipeline report an outage one by one', async (t) => {
  const server = await serve(t);
  const redis = await open(t, server.url, 2_000);
  await server.kill();
  await until(() => !redis.isReady());
  const results = (await redis.pipeline().get('a').set('b', '1').exec()) ?? [];
  t.is(results.length, 2);
  t.true(results.every(([error]) => error instanceof RedisUnavailable));
});

test('scripts survive a server that forgot them, and run over a connection that has never seen them', async (t) => {
  const server = await serve(t);
  const redis = await open(t, server.url);
  const add = defineScript<number>(redis, {
    name: 'testAdd',
    lua: `return redis.call('INCRBY', KEYS[1], ARGV[1])`,
    keys: 1,
  });
  t.is(await add(['n'], [2]), 2);
  await redis.script('FLUSH');
  t.is(await add(['n'], [3]), 5);
  await server.kill();
  await until(() => !redis.isReady());
  await server.restart();
  await until(() => redis.isReady());
  t.deepEqual(await Promise.all([add(['n'], [1]), add(['n'], [1])]), [1, 2]);
});

test('calls of a script at the same time are one for the server; each has its own reply or its own error', async (t) => {
  const server = await serve(t);
  const redis = await open(t, server.url);
  const push = defineScript<number | null>(redis, {
    name: 'testPush',
    lua: `if ARGV[1] == '' then return nil end
      if ARGV[1] == 'no' then return redis.error_reply('ERR not this one') end
      if ARGV[1] == 'false' then return false end
      return redis.call('RPUSH', KEYS[1], unpack(ARGV))`,
    keys: 1,
  });
  await redis.set('text', 'x');
  await redis.config('RESETSTAT');
  const replies = await Promise.allSettled([
    ...[push(['a'], ['1']), push(['b'], ['1', '2']), push(['text'], ['1'])],
    ...[push(['a'], ['']), push(['a'], ['3']), push(['a'], ['no']), push(['a'], ['false'])],
  ]);
  t.deepEqual(
    replies.map((one) => (one.status === 'fulfilled' ? one.value : 'failed')),
    [1, 2, 'failed', null, 2, 'failed', null],
  );
  const failed = replies[2] as PromiseRejectedResult;
  t.regex(String(failed.reason), /ReplyError: .*WRONGTYPE/);
  t.false(failed.reason instanceof RedisUnavailable);
  const returned = replies[5] as PromiseRejectedResult;
  t.regex(String(returned.reason), /ReplyError: ERR not this one/);
  t.deepEqual(await redis.lrange('b', 0, -1), ['1', '2']);
  t.regex(await redis.info('commandstats'), /cmdstat_eval(sha)?:calls=1,/);
});

test('a script name stands for one text, and the number of keys is checked', async (t) => {
  const redis = create(t, { url: nowhere, log: silentLog });
  const definition = { name: 'testOne', lua: 'return 1', keys: 1 };
  const script = defineScript<number>(redis, definition);
  t.notThrows(() => defineScript<number>(redis, definition));
  t.throws(() => defineScript(redis, { ...definition, lua: 'return 2' }), { message: /testOne/ });
  t.throws(() => defineScript(redis, { ...definition, name: 'get' }), { message: /get/ });
  t.throws(() => script([], []), { message: /takes 1 keys/ });
});

test('an outage is logged once and so is its end, never with the password', async (t) => {
  const lines: string[] = [];
  const write = (fields: Record<string, unknown>, message: string) => {
    lines.push(`${message} ${JSON.stringify(fields)}`);
  };
  const log: Log = { ...silentLog, info: write, warn: write };
  const server = await serve(t);
  const url = server.url.replace('//', '//someone:hunter2secret@');
  const setup = await open(t, server.url);
  await setup.call('ACL', 'SETUSER', 'someone', 'on', '>hunter2secret', '~*', '+@all');
  const redis = create(t, { url, log });
  await redisReady(redis, 5_000);
  await server.kill();
  // Enough attempts to have logged each of them, had we wanted to.
  let attempts = 0;
  redis.on('reconnecting', () => {
    attempts += 1;
  });
  await until(() => attempts >= 3);
  t.is(lines.filter((line) => line.startsWith('redis connection lost')).length, 1);
  t.is(lines.filter((line) => line.startsWith('redis ready')).length, 1);
  t.notRegex(lines.join('\n'), /hunter2secret/);
});

test('the wait before a reconnect doubles to two seconds and is never the same for everybody', (t) => {
  const waits = [1, 2, 3, 4, 5, 6, 7, 50].map((times) => reconnectDelayMs(times, () => 0));
  t.deepEqual(waits, [50, 100, 200, 400, 800, 1_600, 2_000, 2_000]);
  t.is(
    reconnectDelayMs(50, () => 1),
    2_500,
  );
});

test('addresses: other protocols and none at all are refused', (t) => {
  t.throws(() => createRedis({ url: 'http://127.0.0.1', log: silentLog }), { message: /redis:/ });
  t.throws(() => createRedis({ url: ' , ', log: silentLog }), { message: /missing/ });
});
