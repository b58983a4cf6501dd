// Differences of every kind, planted in sound books: each is found, by its own check and no other.
import test from 'ava';
import { createLedgerStore } from '../../lib/billing/ledger-store.ts';
import { createPaymentStore } from '../../lib/billing/payment-store.ts';
import { type Difference, reconcile } from '../../lib/billing/reconcile.ts';
import { createReconcileStore } from '../../lib/billing/reconcile-store.ts';
import {
  chargeForSend,
  chargeForSuccess,
  chargeForTotp,
  type Posting,
  refundForFailure,
} from '../../lib/billing/rules.ts';
import { createMysql, type Database } from '../../lib/infra/mysql.ts';
import { hour, systemClock } from '../../lib/kernel/clock.ts';
import { idBytes, newId } from '../../lib/kernel/ids.ts';
import type { Plan } from '../../lib/messages/rules.ts';
import type { TestDatabase } from '../support/databases.ts';
import { createMigratedDatabase } from '../support/schema.ts';

let database: TestDatabase;
let db: Database;

test.before(async () => {
  database = await createMigratedDatabase('planted');
  db = createMysql({ url: database.url, pool: 4 });
});
test.after.always(async () => {
  await db?.destroy();
  await database?.drop();
});

const price = 50_000;
const at = systemClock.now();

const makeAccount = async (): Promise<string> => {
  const id = newId();
  await db('accounts').insert({
    ...{ id: idBytes(id), email: id, email_key: id, password_hash: '-', name: 'x', phone: '+1' },
    ...{ locale: 'en', status: 'active', billing_plan: 'trial', tier: 'standard', created_at: 1 },
  });
  return id;
};

const post = (...postings: (Posting | undefined)[]) =>
  createLedgerStore(db).post(
    postings.filter((posting) => posting !== undefined),
    at,
  );

type Course = 'sent' | 'verified' | 'failed';
type Made = { id: string; accountId: string; plan: Plan; priceMicros: number };

const makeMessage = async (
  accountId: string,
  plan: Plan,
  course: Course,
  mode: 'live' | 'test' = 'live',
): Promise<Made> => {
  const id = newId();
  await db('messages').insert({
    ...{ id: idBytes(id), account_id: idBytes(accountId), mode, origin: 'send', plan },
    ...{ phone: '+14155550123', country: 'US', request_id: 'r', price_micros: price },
    ...{ status: course, accepted_at: at, expires_at: at },
    verified_at: course === 'verified' ? at : null,
    failed_at: course === 'failed' ? at : null,
  });
  return { id, accountId, plan, priceMicros: price };
};

const makeTotp = async (accountId: string, step: number) => {
  const enrollmentId = newId();
  await db('totp_log').insert({
    ...{ id: idBytes(newId()), account_id: idBytes(accountId), mode: 'live', step },
    ...{ enrollment_id: idBytes(enrollmentId), phone: '+14155550123', status: 'verified' },
    ...{ price_micros: 2_000, request_id: 'r' },
  });
  const plan = 'pay_per_success' as const;
  return { accountId, enrollmentId, step, plan, priceMicros: 2_000, at };
};

const moneyOf = (accountId: string, reference: string, amountMicros: number): Posting => ({
  ...{ accountId, reference, kind: 'deposit', amountMicros, at, usesTrial: false },
  ...{ plan: null, priceMicros: null, messageId: null, note: null },
});

const step = Math.floor(at / 30_000);

/** An account with one of everything, all of it as it should be. */
const soundBooks = async () => {
  const accountId = await makeAccount();
  const payment = `cs_test_${newId()}`;
  await createPaymentStore(db).keep({
    ...{ name: payment, account: accountId, accountId, amountMicros: 20_000_000, intent: null, at },
  });
  const free = await makeMessage(accountId, 'trial', 'verified');
  const paid = await makeMessage(accountId, 'pay_per_success', 'verified');
  const taken = await makeMessage(accountId, 'per_message', 'sent');
  const refunded = await makeMessage(accountId, 'per_message', 'failed');
  const app = await makeTotp(accountId, step);
  const nothing = await makeMessage(accountId, 'pay_per_success', 'sent');
  const sandbox = await makeMessage(accountId, 'pay_per_success', 'verified', 'test');
  await post(
    moneyOf(accountId, `deposit:${payment}`, 20_000_000),
    moneyOf(accountId, 'deposit:by-hand', 1_000_000),
    ...[chargeForSuccess(free, at), chargeForSuccess(paid, at), chargeForTotp(app)],
    ...[chargeForSend(taken, at), chargeForSend(refunded, at), refundForFailure(refunded, at)],
  );
  return { accountId, payment, free, paid, taken, refunded, app, nothing, sandbox };
};
type Books = Awaited<ReturnType<typeof soundBooks>>;

const differences = async (accountId: string): Promise<Difference[]> => {
  const books = createReconcileStore(db);
  const found = await reconcile({ books, clock: systemClock }, systemClock.now() + hour);
  return found.differences.filter((one) => one.accountId === accountId);
};

const rowOf = ({ accountId }: Books, reference: string) =>
  db('ledger').where({ account_id: idBytes(accountId), reference });
const account = ({ accountId }: Books) => db('accounts').where({ id: idBytes(accountId) });
const message = ({ id }: Made) => db('messages').where({ id: idBytes(id) });

/** A row that the product would not write, with balance and sequence as they should be. */
const odd = (posting: Posting | undefined, change: Partial<Posting>) =>
  posting && post({ ...posting, ...change });

const plants: [string, string[], (books: Books) => Promise<unknown> | undefined][] = [
  [
    'a balance that was changed by hand',
    ['the balance is the sum of the ledger'],
    (books) => account(books).update({ balance_micros: 1 }),
  ],
  [
    'a row that is gone from the middle',
    [
      'the balance is the sum of the ledger',
      'the sequence has no gap',
      'each row continues the balance before it',
      'every verified message is charged, at its price',
    ],
    (books) => rowOf(books, `charge:${books.paid.id}`).delete(),
  ],
  [
    'a second charge of a message, under another name',
    ['each row bears the name of what it is for'],
    (books) => odd(chargeForSuccess(books.paid, at), { reference: `charge:${newId()}` }),
  ],
  [
    'a charge that names no message',
    ['each row bears the name of what it is for'],
    (books) => odd(chargeForSuccess(books.paid, at), { reference: 'charge:x', messageId: null }),
  ],
  [
    'a charge for a code that nobody entered',
    ['what is charged was verified, or taken where that is paid for'],
    (books) => post(chargeForSuccess(books.nothing, at)),
  ],
  [
    'a charge for a message that no channel took',
    ['what is charged was verified, or taken where that is paid for'],
    (books) => message(books.taken).update({ accepted_at: null }),
  ],
  [
    'a charge on somebody else’s account',
    ['what is charged was verified, or taken where that is paid for'],
    (books) => message(books.paid).update({ account_id: idBytes(newId()) }),
  ],
  [
    'a price that is not the one of admission',
    ['every verified message is charged, at its price'],
    (books) => message(books.paid).update({ price_micros: price + 1 }),
  ],
  [
    'the same for a message that is paid for when it is taken',
    ['every message of the plan per message is charged when it was taken'],
    (books) => message(books.taken).update({ price_micros: price + 1 }),
  ],
  [
    'money for a success of the trial',
    ['every verified message is charged, at its price'],
    (books) => message(books.paid).update({ plan: 'trial' }),
  ],
  [
    'a success that was paid for while a free verification was left',
    ['no success was paid for while a free verification was left'],
    (books) => rowOf(books, `charge:${books.paid.id}`).update({ trial_left: 1 }),
  ],
  [
    'a free verification that cost money',
    [
      'free verifications used are those of the ledger',
      'what used a free verification cost nothing',
    ],
    (books) => rowOf(books, `charge:${books.paid.id}`).update({ plan: 'trial' }),
  ],
  [
    'a verification that was never charged',
    ['every verified message is charged, at its price'],
    (books) => message(books.nothing).update({ verified_at: at, status: 'verified' }),
  ],
  [
    'a taken message that was never charged',
    ['every message of the plan per message is charged when it was taken'],
    (books) => message(books.nothing).update({ plan: 'per_message' }),
  ],
  [
    'a failure without its refund',
    ['a refund stands behind all failed ones that were charged'],
    (books) => message(books.taken).update({ failed_at: at, status: 'failed' }),
  ],
  [
    'a refund for what did not fail',
    ['a refund stands behind failed ones only, and gives back their charge'],
    (books) => post(refundForFailure(books.taken, at)),
  ],
  [
    'a refund of more than was charged',
    ['a refund stands behind failed ones only, and gives back their charge'],
    async (books) => {
      await message(books.taken).update({ failed_at: at, status: 'failed' });
      await odd(refundForFailure(books.taken, at), { amountMicros: price + 1 });
    },
  ],
  [
    'a refund of what was not charged',
    ['a refund stands behind failed ones only, and gives back their charge'],
    async (books) => {
      await message(books.nothing).update({ failed_at: at, status: 'failed' });
      await post(refundForFailure({ ...books.nothing, plan: 'per_message' }, at));
    },
  ],
  [
    'a charge for the sandbox',
    ['nothing is charged for a message that is not there'],
    (books) => post(chargeForSuccess(books.sandbox, at)),
  ],
  [
    'a charge for a message that does not exist',
    ['nothing is charged for a message that is not there'],
    (books) => post(chargeForSuccess({ ...books.paid, id: newId() }, at)),
  ],
  [
    'a deposit that takes money',
    ['deposits and refunds come, charges go'],
    ({ accountId }) => post(moneyOf(accountId, 'deposit:odd', -1)),
  ],
  [
    'a TOTP verification that was never charged',
    ['every TOTP verification is charged, at its price'],
    (books) => makeTotp(books.accountId, step),
  ],
  [
    'a TOTP verification charged at another price',
    ['every TOTP verification is charged, at its price'],
    async (books) => {
      const made = await makeTotp(books.accountId, step);
      await post(chargeForTotp({ ...made, priceMicros: 1_000 }));
    },
  ],
  [
    'a TOTP charge without a verification',
    ['every TOTP charge has its verification'],
    (books) => post(chargeForTotp({ ...books.app, step: step - 1 })),
  ],
  [
    'a TOTP charge for a code that was refused',
    ['every TOTP charge has its verification'],
    ({ accountId }) =>
      db('totp_log')
        .where({ account_id: idBytes(accountId) })
        .update({ status: 'failed' }),
  ],
  [
    'a free verification more than was used',
    ['free verifications used are those of the ledger'],
    (books) => account(books).update({ trial_used: 2 }),
  ],
  [
    'an account that forgot its deposits',
    ['who has deposited has a deposit in the ledger'],
    (books) => account(books).update({ deposited_at: null }),
  ],
  [
    'a payment of another amount than was booked',
    ['every payment received is booked, as it came'],
    ({ payment }) => db('payments').where({ name: payment }).update({ amount_micros: 1 }),
  ],
  [
    'a payment that was taken back, and not booked',
    ['every payment taken back is booked, as it went'],
    async ({ payment }) => {
      const intent = `pi_${payment}`;
      const name = `re_${payment}`;
      await db('payments').where({ name: payment }).update({ intent });
      await createPaymentStore(db).keepReversal({ name, intent, amountMicros: 1, note: '', at });
    },
  ],
  [
    'a deposit by checkout that nobody paid',
    ['every deposit by checkout was received'],
    ({ payment }) => db('payments').where({ name: payment }).delete(),
  ],
];

test.serial('sound books agree', async (t) => {
  const { accountId } = await soundBooks();
  t.deepEqual(await differences(accountId), []);
});

for (const [name, checks, plant] of plants) {
  test.serial(`found: ${name}`, async (t) => {
    const books = await soundBooks();
    await plant(books);
    const found = await differences(books.accountId);
    t.deepEqual(
      [...new Set(found.map(({ check }) => check))].sort(),
      checks.toSorted(),
      JSON.stringify(found),
    );
  });
}
