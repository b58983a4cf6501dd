// Credit in Redis: whatever is held, kept, given back and settled in whatever order, it is what a model says.
import test from 'ava';
import fc from 'fast-check';
import {
  type CreditStore,
  createCreditStore,
  type ReserveRequest,
} from '../../lib/billing/credit-store.ts';
import { type Balance, holdMs, minimumBalanceMicros, owedHoldMs } from '../../lib/billing/rules.ts';
import { hour, minute } from '../../lib/kernel/clock.ts';
import { openTestRedis, type TestRedis } from '../support/redis-server.ts';

let server: TestRedis;
let credit: CreditStore;

test.before(async () => {
  server = await openTestRedis();
  credit = createCreditStore(server.redis, server.prefix);
});
test.after.always(() => server.close());

const start = 1_700_000_000_000;
let accounts = 0;
const anAccount = (): string => {
  accounts += 1;
  return `account${accounts}`;
};
const keyOf = (name: string, accountId: string) => `${server.prefix}${name}:{${accountId}}`;

const balanceOf = (micros: number, seq: number): Balance => ({
  ...{ micros, seq, spentHour: 0, spentMicros: 0, deposited: true },
  ...{ trialGranted: 0, trialUsed: 0 },
});

const request = (accountId: string, change: Partial<ReserveRequest>): ReserveRequest => ({
  ...{ accountId, holdId: 'x', holdForMs: holdMs, priceMicros: 1, capMicros: null },
  ...{ plan: 'pay_per_success', trialPaused: false, shared: undefined, now: start },
  ...change,
});

const unit = 100_000;
type Step =
  | { kind: 'reserve'; id: number; price: number }
  | { kind: 'release' | 'keep' | 'charge'; id: number }
  | { kind: 'wait'; minutes: number };

const id = fc.integer({ min: 0, max: 5 });
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant('reserve' as const), id, price: fc.integer({ min: 0, max: 12 }) }),
  fc.record({ kind: fc.constantFrom('release' as const, 'keep' as const, 'charge' as const), id }),
  fc.record({ kind: fc.constant('wait' as const), minutes: fc.integer({ min: 1, max: 6 }) }),
);

/** The same as the scripts, without Redis. */
const createModel = (micros: number) => {
  const holds = new Map<number, { price: number; until: number }>();
  let balance = micros;
  const held = (now: number): number => {
    for (const [name, { until }] of holds) if (until <= now) holds.delete(name);
    return [...holds.values()].reduce((sum, { price }) => sum + price, 0);
  };
  return {
    held,
    priceOf: (name: number) => holds.get(name)?.price,
    balance: () => balance,
    reserve: (name: number, price: number, now: number): boolean => {
      const open = balance - held(now);
      if (balance < minimumBalanceMicros || open < price) return false;
      holds.set(name, { price, until: now + holdMs });
      return true;
    },
    release: (name: number) => holds.delete(name),
    keep: (name: number, now: number) => {
      const hold = holds.get(name);
      if (hold) hold.until = now + owedHoldMs;
    },
    charge: (name: number) => {
      balance -= holds.get(name)?.price ?? 0;
      holds.delete(name);
    },
  };
};

const play = async (accountId: string, steps: readonly Step[]): Promise<[unknown, unknown][]> => {
  const model = createModel(3_000_000);
  const pairs: [unknown, unknown][] = [];
  let now = start;
  let seq = 1;
  await credit.note(accountId, balanceOf(model.balance(), seq));
  for (const one of steps) {
    if (one.kind === 'wait') {
      now += one.minutes * minute;
      continue;
    }
    const known = model.priceOf(one.id);
    const hold = { id: `m${one.id}`, priceMicros: known ?? unit };
    if (one.kind === 'reserve') {
      // Each message asks once: asked again it would be a takeover, which has the hold already.
      if (known !== undefined) continue;
      const priceMicros = one.price * unit;
      const asked = request(accountId, { holdId: hold.id, priceMicros, now });
      const answer = await credit.reserve(asked);
      pairs.push([answer.kind === 'ok', model.reserve(one.id, priceMicros, now)]);
    } else if (one.kind === 'release') {
      await credit.release(accountId, hold, false);
      model.release(one.id);
    } else if (one.kind === 'keep') {
      await credit.keep(accountId, hold, now + owedHoldMs);
      model.keep(one.id, now);
    } else {
      model.charge(one.id);
      seq += 1;
      await credit.note(accountId, balanceOf(model.balance(), seq), { holds: [hold] });
    }
  }
  // A look that nobody could pay for forgets what is over.
  await credit.reserve(request(accountId, { holdId: undefined, priceMicros: 10 ** 12, now }));
  const held = Number((await server.redis.get(keyOf('held', accountId))) ?? 0);
  return [...pairs, [held, model.held(now)]];
};

test('holds come and go as a model says, and their sum never drifts', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 40 }), async (steps) => {
      for (const [found, expected] of await play(anAccount(), steps)) t.is(found, expected);
    }),
    { numRuns: 150 },
  );
});

test('what was counted in an hour of the shared number outlives the day its total was counted for', async (t) => {
  const accountId = anAccount();
  await credit.note(accountId, balanceOf(3_000_000, 1), { sharedTotal: 0 });
  const shared = { trialAllowance: 10, hourly: 2 };
  const send = (holdId: string) => credit.reserve(request(accountId, { holdId, shared }));
  t.is((await send('a')).kind, 'ok');
  await server.redis.pexpire(keyOf('shared', accountId), 5_000);
  t.is((await send('b')).kind, 'ok');
  t.true((await server.redis.pttl(keyOf('shared', accountId))) > hour - minute);
  t.deepEqual(await send('c'), { kind: 'refused', code: 'CENTRAL_WHATSAPP_LIMIT' });
});

test('a free place that is kept stays taken; one that was settled meanwhile does not come back', async (t) => {
  const accountId = anAccount();
  const trial = { ...balanceOf(0, 1), deposited: false, trialGranted: 1 };
  await credit.note(accountId, trial);
  const send = (holdId: string, now: number) =>
    credit.reserve(request(accountId, { holdId, plan: 'trial', now }));
  const free = { id: 'a', priceMicros: 0 };
  t.is((await send('a', start)).kind, 'ok');
  await credit.keep(accountId, free, start + owedHoldMs);
  t.deepEqual(await send('b', start + hour), { kind: 'refused', code: 'FREE_TRIAL_EXHAUSTED' });
  await credit.note(
    accountId,
    { ...trial, seq: 2, trialGranted: 2, trialUsed: 1 },
    { holds: [free] },
  );
  await credit.keep(accountId, free, start + hour + owedHoldMs);
  t.is((await send('c', start + hour)).kind, 'ok');
});
