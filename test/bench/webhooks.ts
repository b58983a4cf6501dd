// Deliveries of webhooks: what dead neighbours do to healthy endpoints, and what a delivery costs against a bare loop.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { newWebhookSecret, webhookSecretContext } from '../../lib/accounts/webhook-secret.ts';
import type { Database } from '../../lib/infra/mysql.ts';
import { isOutage } from '../../lib/infra/outages.ts';
import { createBroker } from '../../lib/infra/queue/broker.ts';
import { jobs } from '../../lib/jobs.ts';
import { systemClock } from '../../lib/kernel/clock.ts';
import { loadConfig } from '../../lib/kernel/config.ts';
import { idBytes, newId } from '../../lib/kernel/ids.ts';
import { silentLog } from '../../lib/kernel/log.ts';
import { createSealer, type Sealer } from '../../lib/kernel/secrets.ts';
import { createAnnouncer } from '../../lib/messages/announce.ts';
import { messageEvent } from '../../lib/messages/events.ts';
import { render } from '../../lib/webhooks/render.ts';
import { cpuOf } from './usage.ts';
import { badCount, badHost, healthyCount, healthyHost } from './webhook-hosts.ts';
import type { Order, Report } from './webhook-receivers.ts';

export type WebhookFigures = {
  /** p99 from event to arrival at the healthy endpoints, ms: alone, beside bad ones, and while 20 of them die. */
  aloneMs: number;
  besideBadMs: number;
  whileDyingMs: number;
  /** Deliveries per second of CPU: the worker's, and the bare loop's. */
  perCpuSecond: number;
  barePerCpuSecond: number;
};

const perSecond = 200;
const badPerSecond = 100;
const warmupMs = 5_000;
const windowMs = 30_000;
const dying = 20;
const settleMs = 3_000;
const burst = 20_000;
const burstWithinMs = 120_000;
const bareConcurrency = 64;

const eventOf = (accountId: string, phone = '+14155550100') => {
  const at = Date.now();
  const message = {
    ...{ id: newId(), accountId, mode: 'live' as const, origin: 'send' as const, country: 'US' },
    ...{ phone, requestId: 'bench', plan: 'pay_per_success' as const },
    ...{ priceMicros: 50_000, idempotencyHash: null },
  };
  const facts = { channel: 'whatsapp' as const, acceptedAt: at, expiresAt: at + 300_000 };
  return messageEvent('otp.sent', message, at, facts);
};

type Receivers = {
  port: number;
  tell(order: Order): void;
  arrived(): Promise<number[]>;
  end(): void;
};

const startReceivers = async (): Promise<Receivers> => {
  const child: ChildProcess = fork(join(import.meta.dirname, 'webhook-receivers.ts'));
  const answer = async <K extends Report['kind']>(kind: K) => {
    const [report] = (await once(child, 'message')) as [Report];
    if (report.kind !== kind) throw new Error(`the receivers answered ${report.kind}`);
    return report as Extract<Report, { kind: K }>;
  };
  const { port } = await answer('ready');
  return {
    port,
    tell: (order) => void child.send(order),
    arrived: async () => {
      child.send({ kind: 'report' } satisfies Order);
      return (await answer('arrived')).latenciesMs;
    },
    end: () => child.kill(),
  };
};

const openAnnouncer = async (env: NodeJS.ProcessEnv) => {
  const broker = createBroker({
    ...{ urls: [loadConfig(env).amqpUrls], processName: 'bench', jobs: [...jobs] },
    ...{ log: silentLog, clock: systemClock, isOutage },
  });
  await broker.start();
  const announcer = createAnnouncer(broker);
  return {
    announce: (accountId: string) => announcer.announce(eventOf(accountId), { urgent: true }),
    close: async () => {
      await announcer.drain();
      await broker.close();
    },
  };
};

type Stand = {
  receivers: Receivers;
  healthy: readonly string[];
  bad: readonly string[];
  announce(accountId: string): Promise<void>;
};

/** Gives an account an address and a secret, so that what is measured is signed. */
const pointAt = async (
  { db, sealer }: { db: Database; sealer: Sealer },
  id: string,
  url: string,
): Promise<void> => {
  const webhook_secret = sealer.seal(newWebhookSecret(), webhookSecretContext(id));
  await db('accounts')
    .where({ id: idBytes(id) })
    .update({ webhook_url: url, webhook_changed_at: Date.now(), webhook_secret });
};

const p99Of = (values: readonly number[]): number => {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.ceil(sorted.length * 0.99) - 1] ?? 0;
};

/** Announces so many events a second to endpoints in turn, for `ms`. */
const announceSteadily = async (
  stand: Stand,
  ids: readonly string[],
  { rate, ms }: { rate: number; ms: number },
): Promise<number> => {
  const startedAt = performance.now();
  const pending: Promise<void>[] = [];
  let sent = 0;
  for (let past = 0; past < ms; past = performance.now() - startedAt) {
    for (; sent < (past / 1_000) * rate; sent++) {
      pending.push(stand.announce(ids[sent % ids.length] ?? ''));
    }
    await sleep(5);
  }
  await Promise.all(pending);
  return sent;
};

/** The p99 at the healthy endpoints over a window; `beside` happens meanwhile. @throws Error when events are missing */
const measureWindow = async (stand: Stand, beside: () => Promise<unknown>, lost = 0) => {
  stand.receivers.tell({ kind: 'reset' });
  const [sent] = await Promise.all([
    announceSteadily(stand, stand.healthy, { rate: perSecond, ms: windowMs }),
    beside(),
  ]);
  await sleep(settleMs);
  const arrived = await stand.receivers.arrived();
  const wanted = sent * (1 - lost);
  // Those that die take what is on its way to them along.
  if (arrived.length < wanted * (lost > 0 ? 0.99 : 0.999)) {
    throw new Error(
      `of ${Math.round(wanted)} events ${arrived.length} arrived at healthy endpoints`,
    );
  }
  return p99Of(arrived);
};

const measureIsolation = async (stand: Stand) => {
  await announceSteadily(stand, stand.healthy, { rate: perSecond, ms: warmupMs });
  await sleep(1_000);
  const aloneMs = await measureWindow(stand, async () => undefined);
  const besideBadMs = await measureWindow(stand, () =>
    announceSteadily(stand, stand.bad, { rate: badPerSecond, ms: windowMs }),
  );
  const whileDyingMs = await measureWindow(
    stand,
    async () => {
      await sleep(windowMs / 2);
      stand.receivers.tell({ kind: 'die', below: dying });
    },
    dying / healthyCount / 2,
  );
  return { aloneMs, besideBadMs, whileDyingMs };
};

/** CPU of the bare loop for as many posts of the same body, ms. */
const measureBare = async (port: number): Promise<number> => {
  const [rendered] = render(eventOf(newId()));
  const child = fork(join(import.meta.dirname, 'webhook-bare.ts'), [
    ...[String(port), String(burst), String(bareConcurrency), rendered?.body ?? ''],
  ]);
  const [{ cpuMs }] = (await once(child, 'message')) as [{ cpuMs: number }];
  return cpuMs;
};

/** Announces so many events at once; answers how many have arrived when they all have, or when time is up. */
const announceAtOnce = async ({ receivers, healthy, announce }: Stand, count: number) => {
  receivers.tell({ kind: 'reset' });
  await Promise.all(
    Array.from({ length: count }, (_, n) => announce(healthy[n % healthy.length] ?? '')),
  );
  const until = Date.now() + burstWithinMs;
  while ((await receivers.arrived()).length < count && Date.now() < until) await sleep(100);
  // What is written down behind the last answer belongs to it, too.
  await sleep(1_000);
  return (await receivers.arrived()).length;
};

const measureThroughput = async (stand: Stand, workerPid: number) => {
  // As in the bare loop, the first tenth warms up code and connections.
  await announceAtOnce(stand, burst / 10);
  await sleep(settleMs);
  const before = cpuOf(workerPid) ?? 0;
  const arrived = await announceAtOnce(stand, burst);
  const cpuMs = (cpuOf(workerPid) ?? 0) - before;
  const bareMs = await measureBare(stand.receivers.port);
  return {
    perCpuSecond: (arrived / cpuMs) * 1_000,
    barePerCpuSecond: (burst / bareMs) * 1_000,
  };
};

/** Measures both; `ids` are accounts that nobody else uses. */
export const measureWebhooks = async (given: {
  env: NodeJS.ProcessEnv;
  db: Database;
  ids: readonly string[];
  workerPid: number;
}): Promise<WebhookFigures> => {
  const { env, db, ids, workerPid } = given;
  const receivers = await startReceivers();
  const announcer = await openAnnouncer(env);
  const sealer = createSealer(loadConfig(env).sealingKeys);
  const healthy = ids.slice(0, healthyCount);
  const bad = ids.slice(healthyCount, healthyCount + badCount);
  const stand: Stand = { receivers, healthy, bad, announce: announcer.announce };
  try {
    for (const [n, id] of healthy.entries())
      await pointAt({ db, sealer }, id, `http://${healthyHost(n)}:${receivers.port}/ok/${n}`);
    for (const [n, id] of bad.entries())
      await pointAt({ db, sealer }, id, `http://${badHost(n)}:${receivers.port}/bad/${n}`);
    const throughput = await measureThroughput(stand, workerPid);
    return { ...(await measureIsolation(stand)), ...throughput };
  } finally {
    await announcer.close();
    receivers.end();
    for (const id of [...healthy, ...bad])
      await db('accounts')
        .where({ id: idBytes(id) })
        .update({ webhook_url: null });
  }
};
