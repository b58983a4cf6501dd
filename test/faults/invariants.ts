// What must never have happened, counted from MySQL, the simulators, the queues and the client's own log.
import amqp from 'amqplib';
import { reconcile } from '../../lib/billing/reconcile.ts';
import { createReconcileStore } from '../../lib/billing/reconcile-store.ts';
import { createMysql } from '../../lib/infra/mysql.ts';
import { topologyOf } from '../../lib/infra/queue/topology.ts';
import { jobs } from '../../lib/jobs.ts';
import { systemClock } from '../../lib/kernel/clock.ts';
import { idText } from '../../lib/kernel/ids.ts';
import type { Seen } from './load.ts';
import type { StackFile } from './stand.ts';

export type Invariant = { name: string; violations: string[] };

type Message = { id: string; phone: string; status: string };
type Counts = Map<string, { accepted: number; delivered: number }>;

/** Messages by row; only those of the load, whose accounts have no company. */
export const readMessages = async (file: StackFile): Promise<Message[]> => {
  const db = createMysql({ url: file.engines.mysql, pool: 1 });
  const rows = await db('messages').select('id', 'phone', 'status');
  await db.destroy();
  return rows.map(({ id, phone, status }) => ({ id: idText(id as Buffer), phone, status }));
};

const readCounts = async ({ sim }: StackFile): Promise<Counts> => {
  const answer = await fetch(`${sim}/stats/messages`);
  const { messages } = (await answer.json()) as { messages: Record<string, [number, number]> };
  return new Map(
    Object.entries(messages).map(([echo, [accepted, delivered]]) => [
      echo.slice(0, 36),
      { accepted, delivered },
    ]),
  );
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

/** Answers that say nothing was sent. */
const undone = new Set(['DELIVERY_FAILED', 'SERVICE_UNAVAILABLE', 'CHANNEL_NOT_LINKED']);

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
  const known = new Map(messages.map((message) => [message.id, message]));
  const byPhone = Map.groupBy(messages, ({ phone }) => phone);
  const acceptedOf = (id: string | undefined): number => counts.get(id ?? '')?.accepted ?? 0;
  const arrived = (phone: string): Message | undefined =>
    byPhone.get(phone)?.find(({ id }) => (counts.get(id)?.delivered ?? 0) > 0);
  return [
    {
      name: 'no message was sent twice by a provider',
      violations: [...counts].filter(([, { accepted }]) => accepted > 1).map(([id]) => id),
    },
    {
      name: 'no 200 without a provider’s acceptance',
      violations: seen
        .filter(({ status, messageId }) => status === 200 && acceptedOf(messageId) === 0)
        .map(({ phone, messageId }) => `${phone} ${messageId}`),
    },
    {
      name: 'no answer of "nothing was sent" for a code that arrived',
      violations: seen
        .filter(({ code, phone }) => undone.has(code ?? '') && arrived(phone))
        .map(({ phone, code }) => `${phone} ${code}`),
    },
    {
      name: 'no accepted message without a row',
      violations: [...counts.keys()].filter((id) => !known.has(id)),
    },
    {
      name: 'no message without a final state',
      violations: messages.filter(({ status }) => status === 'sent').map(({ id }) => id),
    },
    {
      name: 'no verification lost',
      violations: seen
        .filter(
          ({ verified, messageId }) =>
            verified && known.get(messageId ?? '')?.status !== 'verified',
        )
        .map(({ phone, messageId }) => `${phone} ${messageId}`),
    },
    {
      name: 'every queue is empty, the dead ones too',
      violations: Object.entries(queues).map(([name, depth]) => `${name}: ${depth}`),
    },
    { name: 'the books agree: every verification is charged once', violations: differences },
  ];
};
