// The messages table: facts merge the same in SQL as in the rules, in any order and however often.
import test from 'ava';
import fc from 'fast-check';
import { createMysql, type Database } from '../../lib/infra/mysql.ts';
import { idBytes, newId } from '../../lib/kernel/ids.ts';
import {
  dueAt,
  type Facts,
  joinFacts,
  type Message,
  noFacts,
  statusOf,
} from '../../lib/messages/rules.ts';
import { createMessageStore, type MessageStore } from '../../lib/messages/store.ts';
import type { TestDatabase } from '../support/databases.ts';
import { createMigratedDatabase } from '../support/schema.ts';

let database: TestDatabase;
let db: Database;
let store: MessageStore;

const deliverySeconds = 60;

test.before(async () => {
  database = await createMigratedDatabase('messages');
  db = createMysql({ url: database.url, pool: 4 });
  store = createMessageStore(db, deliverySeconds);
});

test.after.always(async () => {
  await db?.destroy();
  await database?.drop();
});

const aMessage = (): Message => ({
  id: newId(),
  accountId: newId(),
  mode: 'live',
  origin: 'send',
  phone: '+14155550123',
  country: 'US',
  requestId: 'req-1',
  plan: 'trial',
  priceMicros: 0,
  idempotencyHash: null,
});

const time = fc.integer({ min: 1, max: 1_000_000 });
const maybeTime = fc.option(time, { nil: null });

const someFacts: fc.Arbitrary<Facts> = fc.record({
  channel: fc.constantFrom('whatsapp', 'telegram', null),
  acceptedAt: maybeTime,
  expiresAt: maybeTime,
  deliveredAt: maybeTime,
  readAt: maybeTime,
  verifiedAt: maybeTime,
  failedAt: fc.constant(null),
  failureReason: fc.constant(null),
  expiredAt: maybeTime,
});

// The same failure is always told with the same reason.
const withFailure = fc.tuple(someFacts, maybeTime).map(([facts, failedAt]): Facts => {
  const reason = (failedAt ?? 0) % 2 === 0 ? 'not_on_channel' : 'not_delivered';
  return { ...facts, failedAt, failureReason: failedAt === null ? null : reason };
});

const newsOfOne = fc.array(withFailure, { minLength: 1, maxLength: 5 });

test('the order of news and its repetition do not change what is known', (t) => {
  fc.assert(
    fc.property(newsOfOne, fc.infiniteStream(fc.nat()), (news, picks) => {
      const shuffled = [...news, ...news].sort(() => ((picks.next().value ?? 0) % 2) - 0.5);
      t.deepEqual(shuffled.reduce(joinFacts, noFacts), news.reduce(joinFacts, noFacts));
    }),
  );
});

test('a row holds what the rules say, whatever order and repetition the news came in', async (t) => {
  await fc.assert(
    fc.asyncProperty(newsOfOne, async (news) => {
      const message = aMessage();
      for (const facts of [...news, ...news]) await store.merge(message, facts);
      const stored = await store.find(message.accountId, message.id);
      const expected = news.reduce(joinFacts, noFacts);
      t.deepEqual(stored?.facts, expected);
      t.is(stored?.status, statusOf(expected));
      const [row] = await db('messages').where({ id: idBytes(message.id) });
      t.is(row.due_at, dueAt(expected, deliverySeconds));
    }),
    { numRuns: 60 },
  );
});

const earlierNews = fc.array(withFailure, { maxLength: 3 });

test('a verification adds to a row what the rules say, whatever it holds, once or again', async (t) => {
  await fc.assert(
    fc.asyncProperty(earlierNews, time, maybeTime, async (news, verifiedAt, deliveredAt) => {
      const message = aMessage();
      for (const facts of news) await store.merge(message, facts);
      const before = news.reduce(joinFacts, noFacts);
      // What a verifier knows of acceptance, whoever else has said so.
      const { channel, acceptedAt, expiresAt } = before;
      const taken = { channel, acceptedAt: acceptedAt ?? 1, expiresAt };
      const facts = { ...noFacts, ...taken, deliveredAt, verifiedAt };
      const expected = joinFacts(before, facts);
      for (let times = 0; times < 2; times++) {
        await store.verified(message, facts);
        const stored = await store.find(message.accountId, message.id);
        t.deepEqual(stored?.facts, expected);
        t.is(stored?.status, 'verified');
      }
      const [row] = await db('messages').where({ id: idBytes(message.id) });
      t.is(row.due_at, null);
    }),
    { numRuns: 60 },
  );
});

test('of many verifications at once each has its time, those without a row and those of Telegram too', async (t) => {
  const messages = Array.from({ length: 60 }, aMessage);
  const taken = { ...noFacts, acceptedAt: 1, expiresAt: 9e12 };
  const channels = ['whatsapp', 'telegram', null] as const;
  const all = messages.map((message, index) => {
    const channel = channels[index % 3] ?? null;
    return { message, facts: { ...taken, channel, verifiedAt: 1_000 + index } };
  });
  const known = all.filter((_, index) => index % 5 !== 0);
  await Promise.all(
    known.map(({ message }) => store.merge(message, { ...taken, channel: 'whatsapp' })),
  );
  await Promise.all(all.map(({ message, facts }) => store.verified(message, facts)));
  for (const { message, facts } of all) {
    const stored = await store.find(message.accountId, message.id);
    const { channel } = known.some((one) => one.message === message)
      ? joinFacts({ ...noFacts, channel: 'whatsapp' }, facts)
      : facts;
    t.deepEqual(stored?.facts, { ...facts, channel });
    t.is(stored?.status, 'verified');
  }
});

test('many merges at once are one statement and all of them are there', async (t) => {
  const messages = Array.from({ length: 300 }, aMessage);
  await Promise.all(
    messages.map((message, index) =>
      store.merge(message, {
        ...noFacts,
        channel: 'whatsapp',
        acceptedAt: index + 1,
        expiresAt: 9e12,
      }),
    ),
  );
  const stored = await store.findAll(messages.map(({ id }) => id));
  t.is(stored.length, 300);
});

test('another account does not find a message', async (t) => {
  const message = aMessage();
  await store.merge(message, noFacts);
  t.is(await store.find(newId(), message.id), undefined);
});

test('what is due is taken once, and again when its lease is over', async (t) => {
  const message = aMessage();
  const accepted = 10_000_000;
  await store.merge(message, {
    ...noFacts,
    channel: 'telegram',
    acceptedAt: accepted,
    expiresAt: accepted + 300_000,
  });
  const has = async (now: number) => (await store.takeDue(now, 1_000, 500)).includes(message.id);
  t.false(await has(accepted + 299_999));
  t.true(await has(accepted + 300_000));
  t.false(await has(accepted + 300_001));
  t.true(await has(accepted + 301_000));
});
