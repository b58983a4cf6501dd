// The doctor's judgements: versions, clocks, queues, and what a script hears.
import test from 'ava';
import { explainAway } from '../../lib/doctor/away.ts';
import {
  exitCodeOf,
  type Finding,
  judgeJob,
  judgeRedis,
  judgeSkew,
  judgeVersion,
} from '../../lib/doctor/rules.ts';

test('engines from the lowest version on are taken, older ones named', (t) => {
  for (const [engine, version, level] of [
    ['MySQL', '8.4.3', 'ok'],
    ['MySQL', '9.1.0', 'ok'],
    ['MySQL', '8.0.40', 'error'],
    ['MariaDB', '10.11.6-MariaDB', 'ok'],
    ['MariaDB', '10.6.18-MariaDB', 'error'],
    ['MariaDB', '11.4.2-MariaDB', 'ok'],
    ['Redis', '7.0.15', 'ok'],
    ['Redis', '6.2.14', 'error'],
    ['RabbitMQ', '3.10.8', 'ok'],
    ['RabbitMQ', '3.9.29', 'error'],
    ['RabbitMQ', '4.1.0', 'ok'],
    ['RabbitMQ', 'unknown', 'error'],
  ] as const) {
    t.is(judgeVersion(engine, version).level, level, `${engine} ${version}`);
  }
  t.regex(judgeVersion('MySQL', '8.0.40').advice, /8\.4/);
});

test('Redis that may lose keys is told from one that keeps them', (t) => {
  const info = (more: string) => `# Server\r\nredis_version:7.2.4\r\n${more}`;
  const codes = (more: string) => judgeRedis(info(more)).map(({ code }) => code);
  const keeps = 'aof_enabled:1\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n';
  t.deepEqual(codes(keeps), ['engine.version']);
  t.deepEqual(codes(keeps.replace('aof_enabled:1', 'aof_enabled:0')), [
    ...['engine.version', 'redis.forgets'],
  ]);
  const evicts = keeps.replace('noeviction', 'allkeys-lru');
  t.deepEqual(codes(evicts), ['engine.version'], 'without a bound nothing is thrown away');
  t.deepEqual(codes(evicts.replace('maxmemory:0', 'maxmemory:1000')), [
    ...['engine.version', 'redis.evicts'],
  ]);
});

test('clocks may differ by less than two seconds and by what the question took', (t) => {
  const codes = [0, 1_900, 2_100, -14_000, 15_100].map((skew) => judgeSkew('x', skew, 0).code);
  t.deepEqual(codes, ['clock.right', 'clock.right', 'clock.off', 'clock.off', 'clock.wrong']);
  t.is(judgeSkew('x', 2_500, 1_000).code, 'clock.right');
  t.regex(judgeSkew('MySQL', 20_000, 0).text, /clock of MySQL is 20\.0 s behind/);
  t.regex(judgeSkew('MySQL', -20_000, 0).text, /20\.0 s ahead of/);
});

test('a queue without a worker, behind, with dead letters, or missing is each said', (t) => {
  const none = { ready: 0, consumers: 0 };
  const codes = (...facts: Parameters<typeof judgeJob>) =>
    judgeJob(...facts).map(({ code }) => code);
  const well = { fresh: { ready: 3, consumers: 2 }, again: none, dead: none };
  t.deepEqual(codes('whatsapp.send', well), ['queue.flows']);
  for (const part of ['fresh', 'again', 'dead']) {
    t.deepEqual(codes('whatsapp.send', { ...well, [part]: undefined }), ['queue.missing'], part);
  }
  t.deepEqual(codes('whatsapp.send', { ...well, again: { ready: 1_000, consumers: 1 } }), [
    'queue.behind',
  ]);
  const ill = { fresh: { ready: 1, consumers: 0 }, again: none, dead: { ready: 2, consumers: 0 } };
  const [idle, dead] = judgeJob('billing.charge', ill);
  t.like(idle, {
    code: 'queue.idle',
    level: 'error',
    text: 'Nobody works on billing.charge; 1 job waits.',
  });
  t.regex(idle?.advice ?? '', /workers\/main\.ts billing\./);
  t.like(dead, { code: 'queue.dead', level: 'warning' });
  t.regex(dead?.text ?? '', /^2 dead letters in billing\.charge\.dead/);
});

const engines = {
  MySQL: 'mysql://user:sesame@db.example:3306/tessera',
  Redis: 'redis://user:sesame@one.example:6379,redis://two.example:6379',
  RabbitMQ: 'amqp://user:sesame@mq.example:5672/vhost',
} as const;
const variables = { MySQL: 'MYSQL_URL', Redis: 'REDIS_URL', RabbitMQ: 'AMQP_URL' } as const;

test('why an engine cannot be used is said in plain words, and no password is repeated', (t) => {
  const problem = (text: string, code?: string) => Object.assign(new Error(text), { code });
  for (const [engine, error, code] of [
    ['MySQL', problem("Access denied for user 'user'", 'ER_ACCESS_DENIED_ERROR'), 'engine.login'],
    ['MySQL', problem("Unknown database 'tessera'", 'ER_BAD_DB_ERROR'), 'engine.no_database'],
    ['MySQL', problem('connect', 'ECONNREFUSED'), 'engine.refused'],
    ['MySQL', problem('getaddrinfo', 'ENOTFOUND'), 'engine.no_host'],
    ['MySQL', problem('connect', 'ETIMEDOUT'), 'engine.silent'],
    ['MySQL', problem('self-signed certificate', 'HANDSHAKE_SSL_ERROR'), 'engine.tls'],
    ['MySQL', problem('no secure connection', 'HANDSHAKE_NO_SSL_SUPPORT'), 'engine.tls'],
    ['MySQL', problem('insecure transport', 'ER_SECURE_TRANSPORT_REQUIRED'), 'engine.tls'],
    ['MySQL', problem('something else: sesame'), 'engine.away'],
    ['Redis', problem('WRONGPASS invalid username-password pair'), 'engine.login'],
    ['Redis', problem('NOAUTH Authentication required.'), 'engine.login'],
    ['Redis', problem('not ready after 5000 ms'), 'engine.silent'],
    ['RabbitMQ', problem('403 (ACCESS-REFUSED) with message'), 'engine.login'],
    ['RabbitMQ', problem('Expected ConnectionOpenOk; got <ConnectionClose>'), 'engine.no_vhost'],
  ] as const) {
    const away = { engine, variable: variables[engine], url: engines[engine] };
    const found = explainAway(away, error);
    t.is(found.code, code, error.message);
    t.true(found.text.includes(engine) && found.advice.length > 20, code);
    if (code !== 'engine.away') t.notRegex(JSON.stringify(found), /sesame/);
  }
  const away = { engine: 'Redis', variable: 'REDIS_URL', url: engines.Redis } as const;
  t.regex(explainAway(away, problem('x', 'ECONNREFUSED')).text, /one\.example:6379, two\.example/);
});

test('scripts hear 1 when something is wrong, with --strict also at a warning', (t) => {
  const of = (...levels: Finding['level'][]): Finding[] =>
    levels.map((level) => ({ code: 'x', area: 'Queues', level, text: '', advice: '' }));
  t.is(exitCodeOf(of('ok', 'ok'), true), 0);
  t.is(exitCodeOf(of('ok', 'warning'), false), 0);
  t.is(exitCodeOf(of('ok', 'warning'), true), 1);
  t.is(exitCodeOf(of('error'), false), 1);
});
