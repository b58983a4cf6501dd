// Whole lives of messages over HTTP: whatever happens to them, and however often a queue says it, the ledger is a model's.
import { isDeepStrictEqual } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import sinon from 'sinon';
import { reconcile } from '../../lib/billing/reconcile.ts';
import { hour } from '../../lib/kernel/clock.ts';
import { idBytes } from '../../lib/kernel/ids.ts';
import type { Plan } from '../../lib/messages/rules.ts';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
const priceMicros = 50_000;
const depositMicros = 10_000_000_000;

test.before(async () => {
  stack = await startStack('lives', {
    settings: {
      ...{ PRICE_USD: '0.05', TRIAL_VERIFICATIONS: '1000', SHARED_NUMBER_HOURLY: '100000' },
      SHARED_NUMBER_UNVERIFIED: '100000',
      // Many lives at once on a busy machine: nobody gives up early.
      ...{ SEND_DEADLINE_MS: '30000', PUBLISH_TIMEOUT_MS: '30000' },
    },
  });
});
test.after.always(() => stack?.close());

type Life = { behaviour: string; verifies: boolean };

/** What a message of each behaviour comes to: whether a channel took it, and whether that failed later. */
const courses: Record<string, { taken: boolean; failed: boolean }> = {
  ok: { taken: true, failed: false },
  early_statuses: { taken: true, failed: false },
  duplicate_statuses: { taken: true, failed: false },
  delivered_then_failed: { taken: true, failed: false },
  unreachable_sync: { taken: false, failed: true },
  unreachable_async: { taken: true, failed: true },
  sent_then_failed: { taken: true, failed: true },
};

const courseOf = ({ behaviour }: Life) => courses[behaviour] ?? { taken: false, failed: false };

/**
 * The kinds of the ledger's rows for a message. Of what failed nothing is left: neither charge nor refund where the
 * news of the failure was first, else both.
 */
const model = (plan: Plan, life: Life, verified: boolean): string[] => {
  if (plan !== 'per_message') return verified ? ['charge'] : [];
  const { taken, failed } = courseOf(life);
  return taken && !failed ? ['charge'] : [];
};

/** Every job and event is published up to three times, the copies a little later and in any order. */
const repeatEverything = (random: () => number) => {
  const copies = new Set<Promise<unknown>>();
  const repeat = (publish: () => Promise<unknown>): void => {
    for (let left = Math.floor(random() * 3); left > 0; left--) {
      const wait = new Promise((resolve) => setTimeout(resolve, random() * 150));
      copies.add(wait.then(publish).catch(() => undefined));
    }
  };
  const stubs = [stack.api.broker, stack.worker.broker].flatMap((broker) => {
    const publish = broker.publish.bind(broker);
    const emit = broker.emit.bind(broker);
    return [
      sinon.stub(broker, 'publish').callsFake(async (job, payload, options) => {
        await publish(job, payload, options);
        repeat(() => publish(job, payload, options));
      }),
      sinon.stub(broker, 'emit').callsFake(async (type, body, options) => {
        await emit(type, body, options);
        repeat(() => emit(type, body, options));
      }),
    ];
  });
  return async (): Promise<void> => {
    await Promise.all(copies);
    for (const stub of stubs) stub.restore();
  };
};

type Lived = { id: string; kinds: string[]; failed: boolean };

const live = async (
  t: ExecutionContext,
  customer: Customer,
  { plan, life }: { plan: Plan; life: Life },
): Promise<Lived> => {
  const phone = stack.phone();
  await phone.behave({ whatsapp: life.behaviour });
  const sent = await customer.live.send(phone.number);
  const may = life.verifies && !courseOf(life).failed;
  const answer = may ? await customer.live.verify(phone.number, await phone.code()) : undefined;
  // Without a billing worker the verification stands all the same.
  const verified = answer?.status === 200 || answer?.error.code === 'BILLING_ERROR';
  t.is(verified, may, sent.text);
  const row = await eventually(t, () =>
    stack.api.db('messages').where({ phone: phone.number }).first(),
  );
  const id = (row.id as Buffer).toString('hex');
  return { id, kinds: model(plan, life, verified), failed: courseOf(life).failed };
};

type LedgerRow = { seq: number; kind: string; message_id: Buffer | null };

const ledgerOf = (accountId: string): Promise<LedgerRow[]> =>
  stack.api
    .db('ledger')
    .where({ account_id: idBytes(accountId) })
    .orderBy('seq');

/** What is left of the rows of each message: a charge that was refunded is nothing. */
const byMessage = (rows: LedgerRow[]): Record<string, string[]> => {
  const all: Record<string, string[]> = {};
  for (const { kind, message_id: id } of rows) {
    if (id === null) continue;
    const name = id.toString('hex');
    all[name] = [...(all[name] ?? []), kind];
  }
  for (const [name, kinds] of Object.entries(all)) {
    if (isDeepStrictEqual(kinds, ['charge', 'refund'])) delete all[name];
  }
  return all;
};

const expectedOf = (lived: Lived[]): Record<string, string[]> =>
  Object.fromEntries(
    lived.filter(({ kinds }) => kinds.length > 0).map((one) => [one.id, one.kinds]),
  );

const worth = (plan: Plan, lived: Lived[]): number => {
  const each = plan === 'trial' ? 0 : priceMicros;
  const kinds = lived.flatMap((one) => one.kinds);
  return -each * kinds.length;
};

/** Numbers from 0 to 1 that follow from a seed. */
const randomOf = (seed: number) => {
  let state = seed >>> 0;
  return (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
};

const prove = async (
  t: ExecutionContext,
  { plan, lives, seed }: { plan: Plan; lives: Life[]; seed: number },
): Promise<void> => {
  const customer = await stack.customer({ money: depositMicros / 1_000_000 });
  const { accountId } = customer;
  if (plan !== 'trial') await stack.api.ledger.setPlan(accountId, 'trial', plan);
  await stack.api.revocations.announce();
  const stop = repeatEverything(randomOf(seed));
  const living = lives.map((life) => live(t, customer, { plan, life }));
  await stack.stopWorkers('billing');
  await stack.startWorkers('billing');
  const lived = await Promise.all(living);
  await stop();
  const expected = expectedOf(lived);
  const until = Date.now() + 30_000;
  let found = byMessage(await ledgerOf(accountId));
  const allFailed = async (): Promise<boolean> => {
    const ids = lived.filter(({ failed }) => failed).map(({ id }) => Buffer.from(id, 'hex'));
    const open = await stack.api.db('messages').whereIn('id', ids).whereNot({ status: 'failed' });
    return open.length === 0;
  };
  while (Date.now() < until && !(isDeepStrictEqual(found, expected) && (await allFailed()))) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    found = byMessage(await ledgerOf(accountId));
  }
  t.deepEqual(found, expected);
  await eventually(t, async () => {
    const { ready } = await stack.worker.broker.depth('billing.charge');
    return ready === 0 ? true : undefined;
  });
  const rows = await ledgerOf(accountId);
  t.deepEqual(
    rows.map(({ seq }) => Number(seq)),
    rows.map((_, index) => index + 1),
    'no gap',
  );
  const balance = await stack.api.ledger.balance(accountId);
  t.is(balance?.micros, depositMicros + worth(plan, lived));
  t.deepEqual((await reconcile(stack.api, Date.now() + hour)).differences, []);
};

const life = fc.record<Life>({
  behaviour: fc.constantFrom(...Object.keys(courses)),
  verifies: fc.boolean(),
});

for (const plan of ['trial', 'pay_per_success', 'per_message'] as const) {
  test.serial(
    `${plan}: every charge exactly once, whatever is repeated and reordered`,
    async (t) => {
      const lives = fc.array(life, { minLength: 10, maxLength: 30 });
      await fc.assert(
        fc.asyncProperty(lives, fc.integer(), (all, seed) => prove(t, { plan, lives: all, seed })),
        { numRuns: 4, endOnFailure: true },
      );
    },
  );
}
