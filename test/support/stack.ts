// The whole product for one test file: own database, virtual host and key prefix, real workers, simulated phones.
import type { ExecutionContext } from 'ava';
import { type Listening, listen } from '../../api/listen.ts';
import { type ApiApp, createApiApp, createWorkerApp, type WorkerApp } from '../../lib/app.ts';
import type { Broker } from '../../lib/infra/queue/broker.ts';
import { type Clock, systemClock } from '../../lib/kernel/clock.ts';
import { type Config, loadConfig } from '../../lib/kernel/config.ts';
import { type Log, silentLog } from '../../lib/kernel/log.ts';
import { openSession } from '../../lib/sessions/open.ts';
import { createAccount } from '../../lib/signup/create.ts';
import { type Running, runWorker } from '../../workers/run.ts';
import { workers } from '../../workers/workers.ts';
import { createSimulators } from '../simulators/server.ts';
import { watchAnswers } from './checked-answers.ts';
import { checkPublishes } from './checked-broker.ts';
import { type Client, createClient } from './client.ts';
import type { TestDatabase } from './databases.ts';
import { createLine, type Line } from './line.ts';
import { fund } from './money.ts';
import { testUrl, uniqueName } from './names.ts';
import { createPhone, type TestPhone } from './phones.ts';
import { createMigratedDatabase, migrate } from './schema.ts';
import { shared, testEnvironment } from './settings.ts';
import { createVhost } from './vhosts.ts';

export type Customer = {
  accountId: string;
  email: string;
  password: string;
  live: Client;
  test: Client;
  liveKeyId: string;
  /** Calls with a session of the account, just opened. */
  session: Client;
};

export type Stack = {
  api: ApiApp;
  worker: WorkerApp;
  config: Config;
  /** What `config` was read from: for processes of their own. */
  env: Record<string, string>;
  sim: Awaited<ReturnType<typeof createSimulators>>;
  url: string;
  /** A phone nobody else uses. */
  phone(): TestPhone;
  /** An account of its own with a live and a test key, and a deposit of so many USD (0: none). */
  customer(options?: { money?: number }): Promise<Customer>;
  /** Calls with another session of the account, just opened. */
  sessionOf(accountId: string): Promise<Client>;
  /** The lines to the engines, when asked for by `cuttable`. */
  lines: Record<'mysql' | 'redis' | 'amqp', Line> | undefined;
  /** Calls without a key. */
  anybody: Client;
  /** Publishes also what its consumer will not take; every other publish is held against its job's schema. */
  publishUnchecked: Broker['publish'];
  stopWorkers(...names: string[]): Promise<void>;
  startWorkers(...names: string[]): Promise<void>;
  close(): Promise<void>;
};

export type StackOptions = {
  settings?: Record<string, string>;
  clock?: Clock;
  log?: Log;
  workers?: string[];
  /** Another Redis than the test engines'; a comma list is a Cluster. */
  redisUrl?: string;
  /** An empty database of another server than the test engines'; it is migrated, and left as it is. */
  mysqlUrl?: string;
  /** The product reaches its engines over lines that the test can cut. */
  cuttable?: boolean;
};

/** Where the sessions of customers are opened. */
const source = 'tests';

// Of every customer: hashing it for each of a thousand takes a minute. Signing up by the API hashes as always.
const password = 'a long enough password';
const passwordHash =
  '$argon2id$v=19$m=19456,t=2,p=1$c2FsdCBvZiB0ZXN0cyEhIQ$3oCykWhR+ruA5vk94pQQSAfoB+lJxz9fADHGp9UZoFY';

const allWorkers = ['whatsapp', 'telegram', 'billing', 'analytics', 'webhook'];

const migrated = async (url: string): Promise<Pick<TestDatabase, 'url' | 'drop'>> => {
  await migrate(url);
  return { url, drop: async () => undefined };
};

/** Starts everything in this process; `close` leaves nothing behind. */
export const startStack = async (name: string, options: StackOptions = {}): Promise<Stack> => {
  const { clock = systemClock, log = silentLog } = options;
  const [database, vhost, sim] = await Promise.all([
    options.mysqlUrl === undefined ? createMigratedDatabase(name) : migrated(options.mysqlUrl),
    createVhost(name),
    createSimulators({ port: 0, apiUrl: 'http://127.0.0.1:9', ...shared }),
  ]);
  const redisUrl = options.redisUrl ?? testUrl('TESSERA_TEST_REDIS_URL').href;
  const lines = options.cuttable
    ? {
        mysql: await createLine(database.url),
        redis: await createLine(redisUrl),
        amqp: await createLine(vhost.url),
      }
    : undefined;
  const engines = {
    mysql: lines?.mysql.through(database.url) ?? database.url,
    redis: lines?.redis.through(redisUrl) ?? redisUrl,
    amqp: lines?.amqp.through(vhost.url) ?? vhost.url,
    prefix: `t${uniqueName('').replaceAll('_', '-').slice(-16)}:`,
  };
  const env = testEnvironment(engines, sim.url, options.settings);
  const config = loadConfig(env);
  const common = { config, log, clock };
  const worker = await createWorkerApp({ ...common, processName: 'workers' });
  const api = await createApiApp({ ...common, processName: 'api' });
  const publishUnchecked = api.broker.publish;
  const misfits = [checkPublishes(api.broker), checkPublishes(worker.broker)];
  const listening: Listening = await listen(api);
  const url = `http://127.0.0.1:${listening.port}`;
  const answers = watchAnswers(listening.port);
  sim.setApiUrl(url);

  const running = new Map<string, Running>();
  const startWorkers = async (...names: string[]): Promise<void> => {
    for (const each of names)
      running.set(each, await runWorker(worker, workers[each] ?? { tasks: [] }));
  };
  const stopWorkers = async (...names: string[]): Promise<void> => {
    await Promise.all(names.map((each) => running.get(each)?.stop()));
    for (const each of names) running.delete(each);
  };
  await startWorkers(...(options.workers ?? allWorkers));

  const sessionOf: Stack['sessionOf'] = async (accountId) => {
    const account = await api.accounts.find(accountId);
    if (!account) throw new Error('no account');
    const visitor = { ip: '127.0.0.1', userAgent: 'tests', source };
    const { tokens } = await openSession(api, { account, visitor, mfa: false });
    return createClient(url, tokens.access);
  };

  const customer = async ({ money = 10_000 } = {}): Promise<Customer> => {
    const email = `${uniqueName('c')}@tessera.example`;
    const passwords = { ...api.passwords, hash: async () => passwordHash };
    const registration = { name: 'Customer', phone: '+14155550100', company: null, locale: 'en' };
    const { account, keys, keyIds } = await createAccount(
      { ...api, passwords },
      { email, password, ...registration },
    );
    // As signing up does: the first login is then from nowhere new.
    await api.sources.remember(account.id, source, clock.now());
    if (money > 0) await fund(api.poster, account.id, money);
    return {
      accountId: account.id,
      ...{ email, password },
      session: await sessionOf(account.id),
      liveKeyId: keyIds.live,
      live: createClient(url, keys.live),
      test: createClient(url, keys.test),
    };
  };

  return {
    ...{
      api,
      worker,
      config,
      env,
      sim,
      url,
      lines,
      customer,
      sessionOf,
      startWorkers,
      stopWorkers,
    },
    phone: () => createPhone(sim.url),
    anybody: createClient(url, undefined),
    publishUnchecked,
    close: async () => {
      await sim.close();
      await listening.close();
      misfits.push(answers.stop());
      await stopWorkers(...running.keys());
      await Promise.all([api.close(), worker.close()]);
      await Promise.all(Object.values(lines ?? {}).map((line) => line.close()));
      await Promise.all([database.drop(), vhost.drop()]);
      if (misfits.flat().length > 0) throw new Error(misfits.flat().join('\n'));
    },
  };
};

// Ever longer, so that what takes its time on a busy machine is not slowed down, nor refused, by being asked for.
const firstPauseMs = 20;
const longestPauseMs = 400;

/** Tries `look` until it answers something other than undefined; fails the test after `withinMs`. */
export const eventually = async <T>(
  t: ExecutionContext,
  look: () => Promise<T | undefined> | T | undefined,
  withinMs = 30_000,
): Promise<T> => {
  const until = Date.now() + withinMs;
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 1.1, longestPauseMs)) {
    const found = await look();
    if (found !== undefined) return found;
    if (Date.now() > until) return t.fail('it did not happen in time') as never;
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
};
