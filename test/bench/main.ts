// npm run bench: the product's send, deliver and verify against a bare pipeline of the same shape, in one run.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runSession, type Session, stateFolder } from '../../docker/local/session.ts';
import { createMysql } from '../../lib/infra/mysql.ts';
import { closeRedis, createRedis, type RedisClient, redisReady } from '../../lib/infra/redis.ts';
import { loadConfig } from '../../lib/kernel/config.ts';
import { silentLog } from '../../lib/kernel/log.ts';
import { createRecipientKeys } from '../../lib/kernel/recipients.ts';
import { createLiveStore } from '../../lib/otp/store.ts';
import { seedAccounts } from './accounts.ts';
import { watchBackground } from './background.ts';
import { measureCharges } from './charges.ts';
import { runCycles } from './cycles.ts';
import { deleteKeys, enginePids, engineVersions, makePlaces, type Places } from './engines.ts';
import { createEnroll } from './enrollments.ts';
import { startLoadGenerator } from './load-client.ts';
import { measureLogins } from './logins.ts';
import { help, type Options, readOptions } from './options.ts';
import { phoneOf } from './recipients.ts';
import { type Result, resultOf } from './result.ts';
import type { Bench, Round } from './rounds.ts';
import { createSimulator } from './simulator.ts';
import {
  bareNames,
  makeEnvironment,
  migrate,
  precompileAll,
  productNames,
  settingsOf,
  startProcesses,
  stopProcesses,
} from './stack.ts';
import { printResult } from './table.ts';
import {
  chargesVerdict,
  deliveriesVerdict,
  isolationVerdicts,
  loginsVerdict,
  type Verdict,
} from './targets.ts';
import { measureDeliveries } from './webhook-deliveries.ts';
import { measureIsolation } from './webhook-isolation.ts';
import { withStand } from './webhook-stand.ts';

const learnAtOnce = 1_000;

/** Marks phones as known to be reached by WhatsApp, where the product itself keeps it. */
const createLearn = (redis: RedisClient, env: NodeJS.ProcessEnv): Bench['learn'] => {
  const { keyPrefix, phonePepper } = loadConfig(env);
  const [pepper] = phonePepper;
  if (!pepper) throw new Error('PHONE_PEPPER is empty.');
  const live = createLiveStore(redis, keyPrefix);
  const recipients = createRecipientKeys(pepper);
  return async (first, count) => {
    for (let from = 0; from < count; from += learnAtOnce) {
      const size = Math.min(learnAtOnce, count - from);
      const phones = Array.from({ length: size }, (_, index) => phoneOf(first + from + index));
      await Promise.all(
        phones.map((phone) => live.learnReachable(recipients.ofPhone(phone), true)),
      );
    }
  };
};

/** Throws when a process is not the one that was started. */
const createCheck = ({ supervisor }: Session): (() => void) => {
  const started = supervisor.pids();
  return () => {
    const now = supervisor.pids();
    const changed = Object.keys(started).find((name) => started[name] !== now[name]);
    if (changed) throw new Error(`${changed} died during the benchmark; its log says why.`);
  };
};

const sayRound =
  ({ say }: Session) =>
  ({ operation, cycle, report }: Round): void =>
    say(`  ${cycle}. ${operation}: ${Math.round(report.requests / report.seconds)} requests/s`);

/** Both on one stand: a worker remembers for a moment which address an account had. */
const measureWebhooks = async (
  session: Session,
  { extras }: Options,
  given: Parameters<typeof withStand>[0],
): Promise<Verdict[]> => {
  const verdicts: Verdict[] = [];
  if (!extras.includes('deliveries') && !extras.includes('webhooks')) return verdicts;
  await withStand(given, async (stand) => {
    if (extras.includes('deliveries')) {
      session.say('  deliveries of webhooks against a bare loop…');
      const pids = { webhook: session.supervisor.pids().webhook ?? 0, ...enginePids() };
      const settings = { pids, nodeSettings: settingsOf('webhook') };
      const figures = await measureDeliveries(stand, settings);
      session.say(`    ${JSON.stringify(figures)}`);
      verdicts.push(deliveriesVerdict(figures));
    }
    if (extras.includes('webhooks')) {
      session.say('  webhooks alone, and beside dead endpoints…');
      const figures = await measureIsolation(stand);
      session.say(`    ${JSON.stringify(figures)}`);
      verdicts.push(...isolationVerdicts(figures));
    }
  });
  return verdicts;
};

const measure = async (
  session: Session,
  places: Places,
  redis: RedisClient,
  options: Options,
): Promise<Result> => {
  const startedAt = new Date();
  const { env, ports } = await makeEnvironment(session, places);
  await Promise.all([migrate(session, env), precompileAll(session, env)]);
  const db = createMysql({ url: places.product.mysql, pool: 2 });
  const { keys, ids } = await seedAccounts(db, options.accounts);
  const engines = await engineVersions(db, redis, places.product.amqp);
  session.say('Starting the simulators, the bare pipeline and the product…');
  await startProcesses(session, env, options.profile);
  const load = startLoadGenerator(session.signal);
  const simulator = createSimulator(`http://127.0.0.1:${ports.sim}`, env.WHATSAPP_WABA_ID ?? '');
  const background = await watchBackground(places.product.amqp, simulator);
  const bench: Bench = {
    ...{ options, load, simulator, background, keys, ports },
    pids: { ...session.supervisor.pids(), ...enginePids(), 'load generator': load.pid },
    watchedMemory: productNames,
    learn: createLearn(redis, env),
    enroll: createEnroll(db, loadConfig(env), ids),
    checkProcesses: createCheck(session),
  };
  try {
    const rounds = await runCycles(bench, options.operations, sayRound(session));
    const extras: Verdict[] = [];
    if (options.extras.includes('logins')) {
      session.say('  sends beside a storm of logins…');
      const figures = await measureLogins(bench);
      session.say(`    ${JSON.stringify(figures)}`);
      extras.push(loginsVerdict(figures));
    }
    if (options.extras.includes('charges')) {
      session.say('  filling the queue of the billing worker…');
      const accountId = ids[0] ?? '';
      extras.push(chargesVerdict(await measureCharges(session, { env, db, accountId })));
    }
    extras.push(...(await measureWebhooks(session, options, { env, db, ids })));
    return resultOf(rounds, { startedAt, options, engines, watched: productNames, extras });
  } finally {
    load.close();
    await background.close().catch(() => undefined);
    await db.destroy();
  }
};

const writeResult = (result: Result): string => {
  const folder = stateFolder('benchmarks');
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `${result.startedAt.replace(/[:.]/g, '-')}.json`);
  writeFileSync(file, `${JSON.stringify(result, null, 2)}\n`);
  return file;
};

const report = (session: Session, result: Result, options: Options): number => {
  const page = printResult(result);
  if (options.json) {
    session.say(page);
    process.stdout.write(`${JSON.stringify(result, null, 2)}\n`);
  } else process.stdout.write(page);
  session.say(`Written to ${writeResult(result)}`);
  return options.check && !result.passed ? 1 : 0;
};

const bench =
  (options: Options) =>
  async (session: Session): Promise<number> => {
    const places = await makePlaces();
    const url = places.product.redis;
    const redis = createRedis({ url, log: silentLog, commandTimeoutMs: 10_000 });
    try {
      await redisReady(redis, 10_000);
      const result = await measure(session, places, redis, options);
      return report(session, result, options);
    } finally {
      await stopProcesses(session);
      await deleteKeys(redis, [places.product.prefix, places.bare.prefix]).catch(() => undefined);
      await closeRedis(redis);
      await places.drop();
    }
  };

const readOrExit = (): Options => {
  try {
    const options = readOptions(process.argv.slice(2));
    if (options) return options;
    process.stdout.write(help);
    return process.exit(0);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : error}\n\n${help}`);
    return process.exit(2);
  }
};

await runSession(
  {
    folder: stateFolder('bench-processes'),
    orNext: true,
    disposable: true,
    stopOrder: [['sim', ...bareNames], productNames],
    stoppedCode: 130,
  },
  bench(readOrExit()),
);
