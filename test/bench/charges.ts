// How fast the billing worker posts when its queue is full: one hot account, every success its own charge.
import type { Session } from '../../docker/local/session.ts';
import { createLedgerStore } from '../../lib/billing/ledger-store.ts';
import type { Database } from '../../lib/infra/mysql.ts';
import { isOutage } from '../../lib/infra/outages.ts';
import { createBroker } from '../../lib/infra/queue/broker.ts';
import { jobs } from '../../lib/jobs.ts';
import { systemClock } from '../../lib/kernel/clock.ts';
import { loadConfig } from '../../lib/kernel/config.ts';
import { idBytes, newId } from '../../lib/kernel/ids.ts';
import { silentLog } from '../../lib/kernel/log.ts';
import { messageEvent } from '../../lib/messages/events.ts';
import { startProcess } from './stack.ts';

const charges = 60_000;
/** As many as travel together when the API is busy. */
const perJob = 10;
const atOnce = 100;
const priceMicros = 1_000;
const lookMs = 25;
const patienceMs = 60_000;

const successOf = (accountId: string) => {
  const at = Date.now();
  const message = {
    ...{ id: newId(), accountId, mode: 'live' as const, origin: 'send' as const, country: 'US' },
    ...{ phone: '+14155550100', requestId: 'bench', plan: 'pay_per_success' as const },
    ...{ priceMicros, idempotencyHash: null },
  };
  const facts = { channel: 'whatsapp' as const, acceptedAt: at, expiresAt: at + 300_000 };
  return messageEvent('otp.verified', message, at, { ...facts, verifiedAt: at });
};

/** Puts the successes into the queue while nobody takes them. */
const fill = async (env: NodeJS.ProcessEnv, accountId: string): Promise<void> => {
  const { amqpUrls } = loadConfig(env);
  const broker = createBroker({
    ...{ urls: [amqpUrls], processName: 'bench', jobs: [...jobs], log: silentLog },
    ...{ clock: systemClock, isOutage },
  });
  await broker.start();
  for (let done = 0; done < charges; done += atOnce * perJob) {
    await Promise.all(
      Array.from({ length: atOnce }, () =>
        broker.emit(
          'otp.verified',
          { events: Array.from({ length: perJob }, () => successOf(accountId)) },
          { messageId: newId(), requestId: 'bench' },
        ),
      ),
    );
  }
  await broker.close();
};

const countCharges = async (db: Database, accountId: string): Promise<number> => {
  const [row] = await db('ledger')
    .where({ account_id: idBytes(accountId), kind: 'charge' })
    .count({ count: '*' });
  return Number(row?.count);
};

/** Charges a second, from the first that is seen to the last. @throws Error when they do not come to an end */
const timeDrain = async (db: Database, accountId: string, before: number): Promise<number> => {
  const until = performance.now() + patienceMs;
  let first: { at: number; count: number } | undefined;
  while (performance.now() < until) {
    const count = (await countCharges(db, accountId)) - before;
    const at = performance.now();
    if (count > 0) first ??= { at, count };
    if (first && count === charges) return ((count - first.count) / (at - first.at)) * 1_000;
    await new Promise((resolve) => setTimeout(resolve, lookMs));
  }
  throw new Error(`not all of ${charges} charges were posted within ${patienceMs / 1_000} s`);
};

/** Charges posted a second for one account by one billing worker whose queue is full. */
export const measureCharges = async (
  session: Session,
  { env, db, accountId }: { env: NodeJS.ProcessEnv; db: Database; accountId: string },
): Promise<number> => {
  await session.supervisor.stop(['billing']);
  const ledger = createLedgerStore(db);
  await ledger.setPlan(accountId, 'trial', 'pay_per_success');
  const before = await countCharges(db, accountId);
  await fill(env, accountId);
  const drained = timeDrain(db, accountId, before);
  await startProcess(session, env, 'billing');
  return drained;
};
