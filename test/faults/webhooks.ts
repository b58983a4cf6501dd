// The webhook worker killed twenty times under load, the broker and the database restarted: every event that was
// confirmed arrives, under one webhook-id.
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { connect } from 'amqplib';
import { createMysql } from '../../lib/infra/mysql.ts';
import { idBytes, newId } from '../../lib/kernel/ids.ts';
import { messageEvent } from '../../lib/messages/events.ts';
import { render } from '../../lib/webhooks/render.ts';
import type { Invariant } from './judge.ts';
import type { StackFile, Stand } from './stand.ts';

const accounts = 60;
const kills = 20;
const perSecond = 150;
const arriveWithinMs = 240_000;

const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

/** A receiver that counts how often each webhook-id came; every fiftieth request fails, so that retries are in it. */
const startReceiver = async () => {
  const seen = new Map<string, number>();
  let requests = 0;
  const server: Server = createServer((request, response) => {
    request.resume();
    request.on('end', () => {
      requests += 1;
      const fails = requests % 50 === 0;
      const id = String(request.headers['webhook-id']);
      if (!fails) seen.set(id, (seen.get(id) ?? 0) + 1);
      response.writeHead(fails ? 500 : 200).end();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { seen, url: `http://127.0.0.1:${port}`, close };
};

const seedAccounts = async ({ engines }: StackFile, url: string): Promise<string[]> => {
  const db = createMysql({ url: engines.mysql, pool: 1 });
  const ids = Array.from({ length: accounts }, newId);
  await db('accounts').insert(
    ids.map((id, number) => ({
      ...{ id: idBytes(id), email: `${id}@hooks.example`, email_key: `${id}@hooks.example` },
      ...{ password_hash: '-', name: 'Hooks', phone: '+14155550100', locale: 'en' },
      ...{ status: 'active', billing_plan: 'trial', tier: 'standard', created_at: Date.now() },
      ...{ webhook_url: `${url}/${number}`, webhook_changed_at: Date.now() },
    })),
  );
  await db.destroy();
  return ids;
};

const eventOf = (accountId: string) => {
  const at = Date.now();
  const message = {
    ...{ id: newId(), accountId, mode: 'test' as const, origin: 'send' as const, country: 'US' },
    ...{ phone: '+14155550100', requestId: 'faults', plan: 'trial' as const, priceMicros: 0 },
    idempotencyHash: null,
  };
  const facts = { channel: 'whatsapp' as const, acceptedAt: at, expiresAt: at + 300_000 };
  return messageEvent('otp.sent', message, at, facts);
};

/** A publisher with confirms that connects again for as long as it takes; the product's own is not what is tested. */
const createPublisher = (amqp: () => string) => {
  let channel: Promise<Awaited<ReturnType<typeof open>>> | undefined;
  const open = async () => {
    const connection = await connect(amqp().split(',')[0] ?? '');
    connection.on('error', () => undefined);
    connection.on('close', () => {
      channel = undefined;
    });
    const opened = await connection.createConfirmChannel();
    opened.on('error', () => undefined);
    return { opened, close: () => connection.close() };
  };
  const publish = async (key: string, content: Buffer, messageId: string): Promise<void> => {
    for (;;) {
      try {
        channel ??= open();
        const { opened } = await channel;
        await new Promise<void>((resolve, reject) => {
          opened.publish('events', key, content, { persistent: true, messageId }, (error) =>
            error ? reject(error) : resolve(),
          );
        });
        return;
      } catch {
        channel = undefined;
        await sleep(500);
      }
    }
  };
  return { publish, close: async () => (await channel)?.close().catch(() => undefined) };
};

/** Every fault in turn, with a breath between them. */
const breakThings = async (stand: Stand, say: (line: string) => void): Promise<void> => {
  const kill = async (name: string, signal: NodeJS.Signals) => {
    await stand.back(name, stand.kill(name, signal));
    await sleep(1_500);
  };
  for (let time = 1; time <= kills; time++) {
    await kill('webhook', 'SIGKILL');
    if (time === 5) await kill('rabbitmq', 'SIGTERM');
    if (time === 10) await kill('mysql', 'SIGTERM');
    if (time === 15) await kill('mysql', 'SIGKILL');
    if (time % 5 === 0) say(`  the webhook worker was killed ${time} times`);
  }
};

/** Publishes at a steady pace until `done`; answers the webhook-ids that must arrive. */
const publishUntil = async (
  done: Promise<void>,
  publisher: ReturnType<typeof createPublisher>,
  ids: readonly string[],
): Promise<string[]> => {
  const wanted: string[] = [];
  const running = new Set<Promise<void>>();
  let ended = false;
  void done.finally(() => {
    ended = true;
  });
  for (let n = 0; !ended; n++) {
    const event = eventOf(ids[n % ids.length] ?? '');
    for (const { eventId } of render(event)) wanted.push(`evt_${eventId}`);
    const content = Buffer.from(JSON.stringify({ events: [event] }));
    const task: Promise<void> = publisher
      .publish(event.type, content, event.id)
      .finally(() => running.delete(task));
    running.add(task);
    await sleep(1_000 / perSecond);
  }
  await Promise.all(running);
  return wanted;
};

/** Runs it on a stack that allows receivers on 127.0.0.1; answers what must hold. */
export const countWebhooks = async (
  stand: Stand,
  say: (line: string) => void,
): Promise<Invariant[]> => {
  const receiver = await startReceiver();
  const ids = await seedAccounts(stand.file(), receiver.url);
  const publisher = createPublisher(() => stand.file().engines.amqp);
  say(`Announcing ${perSecond} events a second and killing the webhook worker ${kills} times…`);
  const broken = breakThings(stand, say);
  const wanted = await publishUntil(broken, publisher, ids);
  await broken;
  const missing = () => wanted.filter((id) => !receiver.seen.has(id));
  const until = Date.now() + arriveWithinMs;
  while (missing().length > 0 && Date.now() < until) await sleep(500);
  await publisher.close();
  receiver.close();
  const known = new Set(wanted);
  const again = [...receiver.seen.values()].reduce((sum, count) => sum + count - 1, 0);
  const share = ((again / wanted.length) * 10_000).toFixed(0);
  say(`${wanted.length} events; ${again} came again under their id (${share} of 10,000).`);
  return [
    { name: 'every event that was confirmed arrives', violations: missing() },
    {
      name: 'under one webhook-id each, and nothing else arrives',
      violations: [...receiver.seen.keys()].filter((id) => !known.has(id)),
    },
  ];
};
