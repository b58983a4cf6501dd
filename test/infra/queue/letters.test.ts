// Dead letters: looking uses nothing up, an order gives up what it means and nothing else, and the ladder begins anew.

import { type ConfirmChannel, connect } from 'amqplib';
import test from 'ava';
import { createLetters, type Letter, type Order } from '../../../lib/infra/queue/letters.ts';
import type { Meta } from '../../../lib/infra/queue/message.ts';
import type { Job } from '../../../lib/jobs.ts';
import { aJob, createRig, named, type Rig, until, type Work, work } from './rig.ts';

let rig: Rig;
test.before(async () => {
  rig = await createRig('letters');
});
test.after.always(() => rig?.close());

const order = (more: Partial<Order> = {}): Order => ({
  ...{ how: 'redrive', wanted: () => true, most: 100_000, perSecond: 10_000 },
  ...{ signal: new AbortController().signal, onProgress: () => undefined },
  ...more,
});

const numberOf = ({ content }: Letter): number => (JSON.parse(content.toString()) as Work).number;

/** A job with so many dead letters, numbered from 0, every third one of the reason `third`. */
const withLetters = async (name: string, count: number) => {
  const job = aJob(name, { retrySeconds: [] });
  const broker = await rig.broker([job]);
  const channel = await rig.operator();
  for (let number = 0; number < count; number++) {
    const reason = number % 3 === 0 ? 'third' : 'attempts_exhausted';
    channel.publish('dead', name, Buffer.from(JSON.stringify(work(number))), {
      ...{ persistent: true, ...named('letter') },
      headers: { attempt: 3, first_published: 1_000, failed_at: 2_000, reason, last_error: 'so' },
    });
  }
  const depth = async (queue: string) => (await channel.checkQueue(queue)).messageCount;
  await until(async () => (await depth(`${name}.dead`)) === count);
  return { job, broker, letters: createLetters({ broker }), depth };
};

/** Consumes until `count` jobs have come; answers their numbers and what each was told of itself. */
const consumed = async (
  { broker, job }: Awaited<ReturnType<typeof withLetters>>,
  count: number,
): Promise<{ number: number; meta: Meta }[]> => {
  const got: { number: number; meta: Meta }[] = [];
  const consumer = await broker.consume(job, async ({ number }, meta) => {
    got.push({ number, meta });
    return { kind: 'done' };
  });
  await until(() => got.length >= count);
  await consumer.stop();
  return got;
};

test('looking at letters leaves them where they are and however often', async (t) => {
  const { letters, depth } = await withLetters('looked', 250);
  for (let look = 0; look < 30; look++) {
    const { letters: found, total } = await letters.scan('looked', 120);
    t.is(new Set(found.map(numberOf)).size, 120);
    t.is(total, 250);
    t.like(found[1], {
      attempts: 3,
      lastError: 'so',
      byBroker: false,
    });
  }
  await until(async () => (await depth('looked.dead')) === 250);
  const once = await letters.scan('looked', 250);
  const again = await letters.scan('looked', 250);
  t.is(new Set(once.letters.map(({ id }) => id)).size, 250);
  t.deepEqual(
    again.letters.map(({ id }) => id),
    once.letters.map(({ id }) => id),
  );
});

test('all are redriven, each once, with a ladder that begins anew', async (t) => {
  const made = await withLetters('redriven', 1_000);
  const progress: number[] = [];
  const done = await made.letters.settle(
    'redriven',
    order({ onProgress: (count) => progress.push(count) }),
  );
  t.deepEqual(done, { settled: 1_000, seen: 1_000, end: 'empty' });
  t.is(progress.at(-1), 1_000);
  const got = await consumed(made, 1_000);
  t.deepEqual(
    got.map(({ number }) => number).sort((a, b) => a - b),
    Array.from({ length: 1_000 }, (_, n) => n),
  );
  for (const { meta } of got)
    t.like(meta, { attempt: 1, redelivered: false, firstPublishedAtMs: 1_000 });
  t.is(await made.depth('redriven.dead'), 0);
});

test('some are redriven: by reason, by id, no more than asked for; the others stay', async (t) => {
  const made = await withLetters('chosen', 90);
  const third = order({ wanted: ({ reason }) => reason === 'third' });
  t.deepEqual(await made.letters.settle('chosen', third), { settled: 30, seen: 90, end: 'empty' });
  const { letters: rest } = await made.letters.scan('chosen', 100);
  t.is(rest.length, 60);
  const id = rest[40]?.id;
  const one = await made.letters.settle(
    'chosen',
    order({ wanted: (letter) => letter.id === id, most: 1 }),
  );
  t.is(one.settled, 1);
  t.like(await made.letters.settle('chosen', order({ most: 9 })), { settled: 9, end: 'most' });
  t.is((await made.letters.scan('chosen', 100)).total, 50);
  t.is((await consumed(made, 40)).length, 40);
});

test('purged letters are gone, and only they', async (t) => {
  const made = await withLetters('purged', 60);
  const third = order({ how: 'purge', wanted: ({ reason }) => reason === 'third' });
  t.is((await made.letters.settle('purged', third)).settled, 20);
  t.is((await made.letters.scan('purged', 100)).total, 40);
  t.is(await made.depth('purged.again'), 0);
  t.is((await made.letters.settle('purged', order({ how: 'purge' }))).settled, 40);
  t.is(await made.depth('purged.dead'), 0);
});

test('an order keeps its rate, looks take turns with it, and it can be stopped', async (t) => {
  const made = await withLetters('paced', 300);
  const stop = new AbortController();
  const startedAt = performance.now();
  let settled = 0;
  const run = made.letters.settle(
    'paced',
    order({
      ...{ perSecond: 30, signal: stop.signal },
      onProgress: (count) => {
        settled = count;
      },
    }),
  );
  await until(() => settled >= 20);
  const seconds = (performance.now() - startedAt) / 1_000;
  t.true(seconds > 0.45, `20 letters at 30 a second took ${seconds} s`);
  const { total } = await made.letters.scan('paced', 500);
  t.true(total <= 300 - 20 && total > 0, String(total));
  stop.abort();
  const done = await run;
  t.is(done.end, 'stopped');
  t.is(done.settled + (await made.letters.scan('paced', 500)).total, 300);
});

test('a letter that dies again is another letter, and an order does not take it twice', async (t) => {
  const made = await withLetters('twice', 20);
  const before = (await made.letters.scan('twice', 50)).letters.map(({ id }) => id);
  const consumer = await made.broker.consume(made.job, async () => ({
    kind: 'dead',
    reason: 'again',
  }));
  const done = await made.letters.settle('twice', order({ perSecond: 100 }));
  t.is(done.settled, 20);
  await until(async () => (await made.depth('twice.dead')) === 20);
  await consumer.stop();
  const { letters: after } = await made.letters.scan('twice', 50);
  t.is(after.length, 20);
  for (const letter of after) {
    t.false(before.includes(letter.id));
    t.like(letter, { reason: 'again', attempts: 1, firstError: 'again' });
  }
});

/** Puts a letter into a queue; one that was declared a moment ago may still refuse. */
const putLetter = (channel: ConfirmChannel, queue: string): Promise<true> =>
  until(() => {
    channel.sendToQueue(queue, Buffer.from('{}'), { persistent: true });
    return channel.waitForConfirms().then(
      () => true as const,
      () => false,
    );
  });

test('processes that start together make an outdated queue anew once', async (t) => {
  const connection = await connect(rig.url);
  const channel = await connection.createConfirmChannel();
  await channel.assertQueue('together.dead', {
    ...{ durable: true, arguments: { 'x-queue-type': 'quorum' } },
  });
  const brokers = await Promise.all(
    Array.from({ length: 4 }, () => rig.broker([aJob('together')], { start: false })),
  );
  const starts = brokers.map((broker) => broker.start());
  await Promise.race(starts);
  // Whoever comes later finds it made: a letter that is in it by then stays.
  await putLetter(channel, 'together.dead');
  await Promise.all(starts);
  t.true(brokers.every((broker) => broker.ready()));
  t.true((await channel.checkQueue('together.dead')).messageCount > 0);
  await connection.close();
});

test('an empty dead queue of an earlier version is made anew; one with letters is left and refused', async (t) => {
  const connection = await connect(rig.url);
  const channel = await connection.createConfirmChannel();
  const old = { 'x-queue-type': 'quorum', 'x-delivery-limit': 1_000_000_000 };
  await channel.assertQueue('former.dead', { durable: true, arguments: old });
  const broker = await rig.broker([aJob('former')]);
  t.true(broker.ready());
  t.is((await createLetters({ broker }).scan('former', 10)).total, 0);

  await channel.assertQueue('full.dead', { durable: true, arguments: old });
  await putLetter(channel, 'full.dead');
  const full = await rig.broker([aJob('full') as Job<Work>], { start: false });
  await Promise.all([
    full.start().catch(() => undefined),
    until(async () => !full.ready()),
    full.close(),
  ]);
  t.true((await channel.checkQueue('full.dead')).messageCount > 0);
  await connection.close();
});

test('however often somebody looks, the count of letters is the same, and an order takes all of them', async (t) => {
  const { letters, depth } = await withLetters('counted', 200);
  let looking = true;
  const looks = (async () => {
    while (looking) await letters.scan('counted', 200);
  })();
  for (let look = 0; look < 8; look++) {
    t.is((await letters.counts(['counted'])).get('counted'), 200);
  }
  const done = await letters.settle('counted', order());
  looking = false;
  await looks;
  t.is(done.settled, 200);
  t.is((await letters.counts(['counted'])).get('counted'), 0);
  t.is(await depth('counted.dead'), 0);
});

test('letters in the hands of an order count as dead until they are given up', async (t) => {
  const { letters } = await withLetters('inhand', 90);
  const stop = new AbortController();
  const third = order({ wanted: ({ reason }) => reason === 'third', perSecond: 20 });
  const running = letters.settle('inhand', { ...third, signal: stop.signal });
  let seen = 90;
  await until(async () => {
    seen = (await letters.counts(['inhand'])).get('inhand') ?? 0;
    return seen < 85;
  });
  const { total } = await letters.scan('inhand', 100);
  t.true(total >= 60 && total <= seen);
  stop.abort();
  const { settled } = await running;
  t.is((await letters.counts(['inhand'])).get('inhand'), 90 - settled);
});

test('letters that another process looks at are not missing from the count; those that went are', async (t) => {
  const { broker } = await withLetters('glimpsed', 20);
  const other = await rig.operator();
  let again = 0;
  const giveBack = async (): Promise<void> => {
    again += 1;
    other.nackAll(true);
    await until(async () => (await other.checkQueue('glimpsed.dead')).messageCount === 20);
  };
  const letters = createLetters({ broker, beforeAgain: giveBack });
  const count = async () => (await letters.counts(['glimpsed'])).get('glimpsed');
  t.is(await count(), 20);
  for (let taken = 0; taken < 15; taken++) await other.get('glimpsed.dead');
  t.is(await count(), 20);
  t.is(again, 1);
  await other.purgeQueue('glimpsed.dead');
  const gone = createLetters({ broker, beforeAgain: () => Promise.resolve() });
  t.is((await gone.counts(['glimpsed'])).get('glimpsed'), 0);
});
