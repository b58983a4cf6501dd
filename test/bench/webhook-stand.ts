// What the benchmarks of webhooks stand on: receivers, accounts that point at them, and events for these.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
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
import { badCount, badHost, healthyCount, healthyHost } from './webhook-hosts.ts';
import type { Order, Report } from './webhook-receivers.ts';

/** An event of an account, as a worker announces it. */
export const eventOf = (accountId: string, phone = '+14155550100') => {
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

export type Stand = {
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

/**
 * Measures on a stand that is there for as long: `ids` are accounts that nobody else uses, the first of them with
 * endpoints that answer.
 */
export const withStand = async <T>(
  given: { env: NodeJS.ProcessEnv; db: Database; ids: readonly string[] },
  measure: (stand: Stand) => Promise<T>,
): Promise<T> => {
  const { env, db, ids } = given;
  const receivers = await startReceivers();
  const announcer = await openAnnouncer(env);
  const sealer = createSealer(loadConfig(env).sealingKeys);
  const healthy = ids.slice(0, healthyCount);
  const bad = ids.slice(healthyCount, healthyCount + badCount);
  try {
    for (const [n, id] of healthy.entries())
      await pointAt({ db, sealer }, id, `http://${healthyHost(n)}:${receivers.port}/ok/${n}`);
    for (const [n, id] of bad.entries())
      await pointAt({ db, sealer }, id, `http://${badHost(n)}:${receivers.port}/bad/${n}`);
    return await measure({ receivers, healthy, bad, announce: announcer.announce });
  } finally {
    await announcer.close();
    receivers.end();
    for (const id of [...healthy, ...bad])
      await db('accounts')
        .where({ id: idBytes(id) })
        .update({ webhook_url: null });
  }
};
