// Reading MySQL, the simulators, the queues and the books at the end of a run, for what must never have happened.
import amqp from 'amqplib';
import { reconcile } from '../../lib/billing/reconcile.ts';
import { createReconcileStore } from '../../lib/billing/reconcile-store.ts';
import { createMysql } from '../../lib/infra/mysql.ts';
import { topologyOf } from '../../lib/infra/queue/topology.ts';
import { jobs } from '../../lib/jobs.ts';
import { systemClock } from '../../lib/kernel/clock.ts';
import { idText } from '../../lib/kernel/ids.ts';
import { type Invariant, judge, type Message } from './judge.ts';
import type { Seen } from './load.ts';
import type { StackFile } from './stand.ts';

/** Messages by row; only those of the load, whose accounts have no company. */
export const readMessages = async (file: StackFile): Promise<Message[]> => {
  const db = createMysql({ url: file.engines.mysql, pool: 1 });
  const rows = await db('messages').select('id', 'phone', 'status');
  await db.destroy();
  return rows.map(({ id, phone, status }) => ({ id: idText(id as Buffer), phone, status }));
};

type Counted = Record<string, [accepted: number, delivered: number]>;

const countsBy = (counted: Counted, nameOf: (key: string) => string) => {
  const counts = new Map<string, { accepted: number; delivered: number }>();
  for (const [key, [accepted, delivered]] of Object.entries(counted)) {
    const before = counts.get(nameOf(key)) ?? { accepted: 0, delivered: 0 };
    counts.set(nameOf(key), {
      accepted: before.accepted + accepted,
      delivered: before.delivered + delivered,
    });
  }
  return counts;
};

/** WhatsApp's messages by our id, which their echo begins with; Telegram's by phone. */
const readCounts = async ({ sim }: StackFile) => {
  const answer = await fetch(`${sim}/stats/messages`);
  const { messages, telegram } = (await answer.json()) as Record<'messages' | 'telegram', Counted>;
  return {
    whatsapp: countsBy(messages, (echo) => echo.slice(0, 36)),
    telegram: countsBy(telegram, (key) => key.split(':')[0] ?? ''),
  };
};

/** Messages that lie in any queue, dead ones included. */
export const readQueues = async ({ engines }: StackFile): Promise<Record<string, number>> => {
  const connection = await amqp.connect(engines.amqp);
  const channel = await connection.createChannel();
  const depths: Record<string, number> = {};
  for (const { name } of topologyOf(jobs).queues) {
    const { messageCount } = await channel.checkQueue(name);
    if (messageCount > 0) depths[name] = messageCount;
  }
  await connection.close();
  return depths;
};

/** What the books say once everything is settled. */
const readBooks = async ({ engines }: StackFile): Promise<string[]> => {
  const db = createMysql({ url: engines.mysql, pool: 1 });
  try {
    const books = createReconcileStore(db);
    const { differences } = await reconcile({ books, clock: systemClock }, systemClock.now());
    return differences.map(({ check, detail }) => `${check}: ${detail}`);
  } finally {
    await db.destroy();
  }
};

/** Counts what must never have happened, from every side. */
export const countInvariants = async (
  file: StackFile,
  seen: readonly Seen[],
): Promise<Invariant[]> => {
  const [messages, counts, queues, differences] = await Promise.all([
    readMessages(file),
    readCounts(file),
    readQueues(file),
    readBooks(file),
  ]);
  return judge({ seen, messages, ...counts, queues, differences });
};
