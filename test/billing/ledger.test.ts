// The ledger: whatever is posted, in whatever order, however often and by however many, it is what a model says.
import test from 'ava';
import fc from 'fast-check';
import { createLedgerStore } from '../../lib/billing/ledger-store.ts';
import { createPoster } from '../../lib/billing/post.ts';
import {
  chargeForSend,
  chargeForSuccess,
  type Posting,
  refundForFailure,
} from '../../lib/billing/rules.ts';
import { createMysql, type Database } from '../../lib/infra/mysql.ts';
import type { Meta } from '../../lib/infra/queue/message.ts';
import { hour, systemClock } from '../../lib/kernel/clock.ts';
import { idBytes, newId } from '../../lib/kernel/ids.ts';
import { silentLog } from '../../lib/kernel/log.ts';
import { messageEvent } from '../../lib/messages/events.ts';
import { createNewsStore } from '../../lib/messages/news-store.ts';
import { type Message, noFacts, type Plan } from '../../lib/messages/rules.ts';
import { handleBilling, type SettleDeps } from '../../lib/otp/settle.ts';
import type { TestDatabase } from '../support/databases.ts';
import { aNumber } from '../support/phones.ts';
import { createMigratedDatabase } from '../support/schema.ts';

let database: TestDatabase;
let db: Database;

test.before(async () => {
  database = await createMigratedDatabase('ledger');
  db = createMysql({ url: database.url, pool: 12 });
});
test.after.always(async () => {
  await db?.destroy();
  await database?.drop();
});

/** Free verifications of every account here. */
const granted = 3;

const makeAccount = async (): Promise<string> => {
  const id = newId();
  await db('accounts').insert({
    ...{ id: idBytes(id), email: id, email_key: id, password_hash: '-', name: 'x', phone: '+1' },
    ...{ locale: 'en', status: 'active', billing_plan: 'trial', tier: 'standard', created_at: 1 },
    trial_granted: granted,
  });
  return id;
};

const depositOf = (accountId: string, micros: number): Posting => ({
  ...{ accountId, reference: `deposit:${newId()}`, kind: 'deposit', amountMicros: micros },
  ...{ plan: null, priceMicros: null, messageId: null, note: null, usesTrial: false, at: 1 },
});

/** What may happen to a message of each plan, as postings. */
const postingsOf = (
  accountId: string,
  plan: Plan,
  priceMicros: number,
  fails: boolean,
): Posting[] => {
  const message = { id: newId(), accountId, plan, priceMicros };
  const all = [
    chargeForSend(message, 1),
    fails ? refundForFailure(message, 2) : chargeForSuccess(message, 2),
  ];
  return all.filter((posting) => posting !== undefined);
};

const rowsOf = (accountId: string) =>
  db('ledger')
    .where({ account_id: idBytes(accountId) })
    .orderBy('seq') as Promise<
    { seq: number; amount_micros: number; balance_after: number; reference: string }[]
  >;

/** What the rows come to in their order: a success on the trial is free while one is left, or nothing was deposited. */
const modelOf = (once: readonly Posting[], rows: readonly { reference: string }[]) => {
  const asked = new Map(once.map((posting) => [posting.reference, posting]));
  let [micros, used, deposited] = [0, 0, false];
  for (const { reference } of rows) {
    const posting = asked.get(reference);
    const free = posting?.mayBeFree === true && (used < granted || !deposited);
    if (free) used += 1;
    else micros += posting?.amountMicros ?? 0;
    deposited ||= posting?.kind === 'deposit';
  }
  return { micros, used };
};

const life = fc.record({
  plan: fc.constantFrom<Plan>('trial', 'pay_per_success', 'per_message'),
  price: fc.integer({ min: 1, max: 1_000_000 }),
  fails: fc.boolean(),
});

test('redelivered, reordered and raced postings come to what the model says', async (t) => {
  const lives = fc.array(life, { minLength: 1, maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(
      lives,
      fc.integer(),
      fc.integer({ min: 1, max: 3 }),
      async (all, seed, workers) => {
        const accountId = await makeAccount();
        const money = depositOf(accountId, 50_000_000);
        const once = [
          money,
          ...all.flatMap(({ plan, price, fails }) => postingsOf(accountId, plan, price, fails)),
        ];
        const thrice = fc.sample(
          fc.shuffledSubarray([...once, ...once, ...once], { minLength: once.length * 3 }),
          {
            ...{ numRuns: 1, seed },
          },
        )[0] as Posting[];
        const stores = Array.from({ length: workers }, () => createLedgerStore(db));
        await Promise.all(
          stores.map(async (store, worker) => {
            const own = thrice.filter((_, index) => index % workers === worker);
            while (own.length > 0) {
              await store.post(own.splice(0, 5), 1);
            }
          }),
        );
        const rows = await rowsOf(accountId);
        const expected = modelOf(once, rows);
        t.deepEqual(
          rows.map(({ reference }) => reference).sort(),
          once.map(({ reference }) => reference).sort(),
        );
        t.deepEqual(
          rows.map(({ seq }) => Number(seq)),
          rows.map((_, index) => index + 1),
          'no gap',
        );
        let balance = 0;
        for (const row of rows) {
          balance += Number(row.amount_micros);
          t.is(Number(row.balance_after), balance);
        }
        t.is(balance, expected.micros);
        const stored = await createLedgerStore(db).balance(accountId);
        t.like(stored, { micros: expected.micros, seq: rows.length, trialUsed: expected.used });
      },
    ),
    { numRuns: 25 },
  );
});

test('eight post to one account at once: every charge once, no gap, nobody deadlocks', async (t) => {
  const accountId = await makeAccount();
  const charges = Array.from({ length: 400 }, () =>
    postingsOf(accountId, 'pay_per_success', 10, false),
  ).flat();
  await Promise.all(
    Array.from({ length: 8 }, async (_, worker) => {
      const store = createLedgerStore(db);
      // Each worker sees all of them, from another beginning.
      const own = [...charges.slice(worker * 50), ...charges.slice(0, worker * 50)];
      while (own.length > 0) await store.post(own.splice(0, 40), 1);
    }),
  );
  const rows = await rowsOf(accountId);
  t.is(rows.length, 400);
  t.like(await createLedgerStore(db).balance(accountId), { micros: -4_000, seq: 400 });
});

test('a refund of an earlier hour makes no room under this hour’s cap', async (t) => {
  const accountId = await makeAccount();
  const store = createLedgerStore(db);
  const message: Message = {
    ...{ id: newId(), accountId, plan: 'per_message', priceMicros: 50_000, mode: 'live' },
    ...{ origin: 'send', phone: aNumber(), country: 'US', requestId: 'r', idempotencyHash: null },
  };
  const other = { ...message, id: newId() };
  const [charge, now] = [chargeForSend(message, 1), chargeForSend(other, hour + 1)];
  if (!charge || !now) return t.fail();
  await store.post([charge, now], 1);
  const facts = { ...noFacts, acceptedAt: 1, failedAt: hour + 2 };
  const failed = messageEvent('otp.failed', message, hour + 2, facts);
  const deps = {
    messages: { find: async () => ({ message, facts, status: 'failed' }) },
    poster: { post: async (posting: Posting) => (await store.post([posting], 1)).outcomes[0] },
  };
  await handleBilling(deps as unknown as SettleDeps, { events: [failed] }, {} as Meta);
  t.like(await store.balance(accountId), { micros: -50_000, spentMicros: 50_000, spentHour: 1 });
});

const chargeOf = (accountId: string): Posting => {
  const message = { id: newId(), accountId, plan: 'pay_per_success' as const, priceMicros: 10 };
  const charge = chargeForSuccess(message, 1);
  if (!charge) throw new Error('a success costs nothing');
  return charge;
};

/** A billing worker of its own, over one connection, with what it says to Redis and to the account. */
const aWorker = () => {
  const pool = createMysql({ url: database.url, pool: 1 });
  const statements: string[] = [];
  const notes: { accountId: string; micros: number; holds: string[] }[] = [];
  const told: string[] = [];
  const poster = createPoster({
    ...{ ledger: createLedgerStore(pool), news: createNewsStore(pool), clock: systemClock },
    log: silentLog,
    announcer: { announce: async ({ type }) => void told.push(type), drain: async () => undefined },
    revocations: { announce: async (id) => void told.push(`forget ${id}`) },
    credit: {
      note: async (accountId, { micros }, { holds = [] } = {}) => {
        notes.push({ accountId, micros, holds: [...holds] });
      },
    },
  });
  pool.on('query', ({ sql }: { sql: string }) => statements.push(sql));
  return { poster, statements, notes, told, close: () => pool.destroy() };
};

test('charges of many accounts that come together share one transaction of a few statements', async (t) => {
  const accounts = await Promise.all(Array.from({ length: 40 }, makeAccount));
  const ids = accounts.map(idBytes);
  // As most accounts are: with money, and without anything left of a trial.
  await db('accounts').whereIn('id', ids).update({ deposited_at: 1, trial_used: 3 });
  await db('accounts').whereIn('id', ids).update({ billing_plan: 'pay_per_success' });
  const worker = aWorker();
  await Promise.all(accounts.map((accountId) => worker.poster.post(chargeOf(accountId))));
  await worker.poster.drain();
  await worker.close();
  const verbs = worker.statements.map((sql) => sql.slice(0, 6).toUpperCase());
  t.deepEqual(verbs, ['BEGIN;', 'SELECT', 'INSERT', 'UPDATE', 'COMMIT']);
  t.is(worker.notes.length, 40);
});

test('the end of a trial is in the commit that brings it, and is told once', async (t) => {
  const accountId = await makeAccount();
  const worker = aWorker();
  await worker.poster.post(depositOf(accountId, 5_000_000));
  for (const _ of [1, 2, 3]) {
    const [use] = postingsOf(accountId, 'trial', 10, false);
    if (!use) return t.fail();
    await worker.poster.post(use);
    await worker.poster.post(use);
  }
  const [{ billing_plan: plan }] = await db('accounts').where({ id: idBytes(accountId) });
  t.is(plan, 'pay_per_success', 'before anybody is told');
  await worker.poster.post(chargeOf(accountId));
  await worker.poster.drain();
  await worker.close();
  t.deepEqual(worker.told.toSorted(), [
    'billing.low_balance',
    'billing.plan_changed',
    'billing.trial_exhausted',
    `forget ${accountId}`,
  ]);
});

test('what a balance could not hold exactly is refused alone', async (t) => {
  const [rich, other] = [await makeAccount(), await makeAccount()];
  const worker = aWorker();
  await worker.poster.post(depositOf(rich, Number.MAX_SAFE_INTEGER));
  const [tooMuch, fine] = await Promise.allSettled([
    worker.poster.post(depositOf(rich, 1)),
    worker.poster.post(depositOf(other, 1)),
  ]);
  await worker.poster.drain();
  await worker.close();
  t.is(tooMuch.status, 'rejected');
  t.is(fine.status, 'fulfilled');
  t.like(await createLedgerStore(db).balance(rich), { micros: Number.MAX_SAFE_INTEGER, seq: 1 });
});

test('what was written by a worker that died at once still ends its hold', async (t) => {
  const accountId = await makeAccount();
  const charge = chargeOf(accountId);
  await createLedgerStore(db).post([charge], 1);
  const worker = aWorker();
  t.is((await worker.poster.post(charge)).posted, 'known');
  await worker.poster.drain();
  await worker.close();
  t.deepEqual(worker.notes, [{ accountId, micros: -10, holds: [String(charge.messageId)] }]);
});
