// Credit in Redis: whatever is held, kept, given back and settled in whatever order, it is what a model says.
import test from 'ava';
import fc from 'fast-check';
import {
  type CreditStore,
  createCreditStore,
  type Reserved,
  type ReserveRequest,
} from '../../lib/billing/credit-store.ts';
import { type Balance, holdMs, minimumBalanceMicros, owedHoldMs } from '../../lib/billing/rules.ts';
import { hour, minute } from '../../lib/kernel/clock.ts';
import { contentsUnder, openTestRedis, type TestRedis } from '../support/redis-server.ts';

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

const balanceOf = (micros: number, seq: number, change: Partial<Balance> = {}): Balance => ({
  micros,
  seq,
  spentHour: 0,
  spentMicros: 0,
  deposited: true,
  trialGranted: 0,
  trialUsed: 0,
  shared: { unverified: 10, perVerified: 5 },
  ...change,
});

const unit = 100_000;
const caps = { trialMicros: 20 * unit, paidMicros: 40 * unit, timesCharged: 3 };

const request = (accountId: string, change: Partial<ReserveRequest>): ReserveRequest => ({
  accountId,
  holdId: 'x',
  holdForMs: holdMs,
  priceMicros: 1,
  costMicros: 0,
  capMicros: null,
  plan: 'pay_per_success',
  trialPaused: false,
  shared: undefined,
  exposure: caps,
  now: start,
  ...change,
});

type Step =
  | { kind: 'reserve'; id: number; price: number; cost: number }
  | { kind: 'release' | 'keep' | 'charge'; id: number }
  | { kind: 'wait'; minutes: number };

const id = fc.integer({ min: 0, max: 7 });
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('reserve' as const),
      id,
      price: fc.integer({ min: 0, max: 12 }),
      cost: fc.integer({ min: 0, max: 8 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constantFrom('release' as const, 'keep' as const, 'charge' as const),
      id,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('wait' as const),
      minutes: fc.oneof(fc.integer({ min: 1, max: 6 }), fc.constantFrom(60, 23 * 60, 24 * 60)),
    }),
  },
);

/** An account as it begins: free verifications, and whether it has paid. */
type Start = { granted: number; deposited: boolean };
const startOf = fc.record({ granted: fc.integer({ min: 0, max: 4 }), deposited: fc.boolean() });

const add = (numbers: Iterable<number>): number => [...numbers].reduce((sum, one) => sum + one, 0);

type Held = { price: number; cost: number; at: number; until: number; mayBeFree: boolean };

/** The same as the scripts and the ledger, without Redis: nothing is forgotten but by its time. */
const createModel = (micros: number, { granted, deposited }: Start) => {
  const holds = new Map<number, Held>();
  // Messages that nobody verified, open or over.
  const unverified = new Map<string, { cost: number; at: number }>();
  const charges: { micros: number; at: number }[] = [];
  const allowance = { unverified: 0, verified: 0 };
  let [balance, used, onTrial, debt] = [micros, 0, !(deposited && granted === 0), false];

  const hourOfWindow = (at: number) => Math.floor(at / hour);
  const counts = (at: number, now: number) => hourOfWindow(at) > hourOfWindow(now) - 25;
  const forget = (now: number) => {
    for (const [name, { until }] of holds) if (until <= now) holds.delete(name);
  };
  const left = () => (onTrial ? Math.max(granted - used, 0) : 0);
  /** What could not be free if all of these succeeded. */
  const needed = (all: readonly { price: number; mayBeFree: boolean }[]) => {
    const free = all.filter(({ mayBeFree }) => mayBeFree).map(({ price }) => price);
    const cheapest = free.toSorted((a, b) => a - b).slice(0, left());
    return add(all.map(({ price }) => price)) - add(cheapest);
  };
  const exposed = (now: number) =>
    add([...unverified.values()].map(({ cost, at }) => (counts(at, now) ? cost : 0)));
  const mostExposed = (now: number) => {
    const charged = add(charges.map(({ micros: one, at }) => (counts(at, now) ? one : 0)));
    return deposited ? Math.max(caps.paidMicros, 3 * charged) : caps.trialMicros;
  };
  const held = (now: number): number => {
    forget(now);
    return needed([...holds.values()]);
  };

  return {
    held,
    left,
    exposed,
    mostExposed,
    onTrial: () => onTrial,
    balance: () => balance,
    used: () => used,
    /** Whether a success was ever paid for with money that was not there. */
    wentIntoDebt: () => debt,
    allowance,
    holdOf: (name: number) => holds.get(name),
    reserve: (name: number, { price, cost }: { price: number; cost: number }, now: number) => {
      forget(now);
      const mayBeFree = left() > 0;
      const open = [...holds.values()].filter((one) => one.mayBeFree).length;
      const covered = mayBeFree && open < left();
      if (!covered) {
        if (!deposited) return onTrial && granted > 0 ? 'FREE_TRIAL_EXHAUSTED' : 'DEPOSIT_REQUIRED';
        const needs = needed([...holds.values(), { price, mayBeFree }]);
        if (balance < minimumBalanceMicros || balance < needs) return 'INSUFFICIENT_CREDITS';
      }
      if (!deposited && allowance.unverified >= 10 + 5 * allowance.verified) {
        return 'CENTRAL_WHATSAPP_CONNECT_REQUIRED';
      }
      if (cost > 0 && exposed(now) + cost > mostExposed(now)) return 'RATE_LIMIT_EXCEEDED';
      holds.set(name, { price, cost, at: now, until: now + holdMs, mayBeFree });
      unverified.set(`${name} ${now}`, { cost, at: now });
      allowance.unverified += 1;
      return mayBeFree ? 'trial' : 'pay_per_success';
    },
    end: (name: number, hold: Held, verified: boolean) => {
      holds.delete(name);
      unverified.delete(`${name} ${hold.at}`);
      allowance.unverified -= 1;
      allowance.verified += verified ? 1 : 0;
    },
    keep: (hold: Held, now: number) => {
      hold.until = now + owedHoldMs;
    },
    charge: (hold: Held, now: number): number => {
      const free = hold.mayBeFree && onTrial && (used < granted || !deposited);
      if (free) used += 1;
      else balance -= hold.price;
      const paid = free ? 0 : hold.price;
      if (paid > 0) charges.push({ micros: paid, at: now });
      debt ||= balance < 0;
      if (deposited && used >= granted) onTrial = false;
      return paid;
    },
  };
};

type Found = [found: unknown, expected: unknown, what: string];
type Model = ReturnType<typeof createModel>;
type Table = { accountId: string; given: Start; model: Model; now: number; seq: number };

/** Notes the account as the model has it. */
const tell = (table: Table, more: Parameters<CreditStore['note']>[2]): Promise<void> => {
  const { accountId, given, model, seq } = table;
  const told = {
    deposited: given.deposited,
    trialGranted: given.granted,
    trialUsed: model.used(),
  };
  return credit.note(accountId, balanceOf(model.balance(), seq, told), more);
};

const pass = async (table: Table, minutes: number): Promise<void> => {
  table.now += minutes * minute;
  // As after the miss of a balance that nobody asked for in a minute: what is counted by the day stays.
  const exposure = { hours: [], now: table.now };
  await tell(table, { shared: { ...table.model.allowance }, exposure });
  // What ends meanwhile is forgotten by the next look.
  await credit.look(table.accountId, { now: table.now, freeLeft: table.model.left() });
};

const ask = async (
  { accountId, model, now }: Table,
  one: Extract<Step, { kind: 'reserve' }>,
): Promise<Found[]> => {
  // Each message asks once: asked again it would be a takeover, which has the hold already.
  if (model.holdOf(one.id) !== undefined) return [];
  const [price, cost] = [one.price * unit, one.cost * unit];
  const answer = await credit.reserve(
    request(accountId, {
      holdId: `m${one.id}`,
      priceMicros: price,
      costMicros: cost,
      plan: model.onTrial() ? 'trial' : 'pay_per_success',
      shared: { hourly: 1_000_000 },
      now,
    }),
  );
  const word = answer.kind === 'ok' ? answer.plan : answer.kind === 'refused' && answer.code;
  return [[word, model.reserve(one.id, { price, cost }, now), 'answer']];
};

const end = async (
  table: Table,
  { kind, id: number }: { kind: 'release' | 'keep' | 'charge'; id: number },
): Promise<void> => {
  const { accountId, model, now } = table;
  const hold = model.holdOf(number);
  const name = `m${number}`;
  if (kind === 'release') {
    await credit.release(accountId, name, { unsent: true });
    if (hold) model.end(number, hold, false);
  } else if (kind === 'keep') {
    await credit.keep(accountId, name, now + owedHoldMs);
    if (hold) model.keep(hold, now);
  } else if (hold) {
    const paid = model.charge(hold, now);
    model.end(number, hold, true);
    table.seq += 1;
    await tell(table, { holds: [name], charged: new Map([[Math.floor(now / hour), paid]]) });
  }
};

const play = async (accountId: string, given: Start, steps: readonly Step[]): Promise<Found[]> => {
  const model = createModel(given.deposited ? 30 * unit : 0, given);
  const table: Table = { accountId, given, model, now: start, seq: 1 };
  const exposure = { hours: [], now: start };
  await tell(table, { shared: { unverified: 0, verified: 0 }, exposure });
  const pairs: Found[] = [];
  for (const one of steps) {
    if (one.kind === 'wait') await pass(table, one.minutes);
    model.held(table.now);
    if (one.kind === 'reserve') pairs.push(...(await ask(table, one)));
    else if (one.kind !== 'wait') await end(table, one);
    const found = await credit.look(accountId, { now: table.now, freeLeft: model.left() });
    pairs.push([found.micros, model.held(table.now), 'held']);
    pairs.push([found.exposure?.costMicros, model.exposed(table.now), 'exposed']);
    if (!given.deposited) pairs.push([found.shared, { ...model.allowance }, 'shared number']);
  }
  return [...pairs, [model.wentIntoDebt(), false, 'debt']];
};

test('what is held, free, exposed and allowed is what a model says, whatever happens in whatever order', async (t) => {
  await fc.assert(
    fc.asyncProperty(
      startOf,
      fc.array(step, { minLength: 1, maxLength: 60 }),
      async (given, steps) => {
        for (const [found, expected, what] of await play(anAccount(), given, steps)) {
          t.deepEqual(found, expected, what);
        }
      },
    ),
    { numRuns: 200, endOnFailure: true },
  );
});

const known = (accountId: string, balance: Balance, now = start): Promise<void> =>
  credit.note(accountId, balance, {
    shared: { unverified: 0, verified: 0 },
    exposure: { hours: [], now },
  });

const refusalOf = async (asked: Promise<Reserved>): Promise<string | undefined> => {
  const answer = await asked;
  return answer.kind === 'refused' ? answer.code : undefined;
};

test('what was counted in an hour of the shared number outlives the day its total was counted for', async (t) => {
  const accountId = anAccount();
  await known(accountId, balanceOf(3_000_000, 1));
  const shared = { hourly: 2 };
  const send = (holdId: string) => credit.reserve(request(accountId, { holdId, shared }));
  t.is((await send('a')).kind, 'ok');
  await server.redis.pexpire(keyOf('shared', accountId), 5_000);
  t.is((await send('b')).kind, 'ok');
  t.true((await server.redis.pttl(keyOf('shared', accountId))) > hour - minute);
  t.is(await refusalOf(send('c')), 'CENTRAL_WHATSAPP_LIMIT');
});

test('a free place that is kept stays taken; one that was settled meanwhile does not come back', async (t) => {
  const accountId = anAccount();
  const trial = balanceOf(0, 1, { deposited: false, trialGranted: 1 });
  await credit.note(accountId, trial);
  const send = (holdId: string, now: number) =>
    credit.reserve(request(accountId, { holdId, plan: 'trial', now }));
  t.is((await send('a', start)).kind, 'ok');
  await credit.keep(accountId, 'a', start + owedHoldMs);
  t.is(await refusalOf(send('b', start + hour)), 'FREE_TRIAL_EXHAUSTED');
  await credit.note(
    accountId,
    { ...trial, seq: 2, trialGranted: 2, trialUsed: 1 },
    { holds: ['a'] },
  );
  await credit.keep(accountId, 'a', start + hour + owedHoldMs);
  t.is((await send('c', start + hour)).kind, 'ok');
});

test('a refused reservation writes nothing, and what Redis does not know is asked for', async (t) => {
  const accountId = anAccount();
  const asked = { plan: 'trial', costMicros: unit, shared: { hourly: 99 } } as const;
  const missing = { balance: true, shared: true, exposure: true };
  t.deepEqual(await credit.reserve(request(accountId, asked)), { kind: 'miss', missing });
  await known(accountId, balanceOf(0, 1, { deposited: false, trialGranted: 50 }));
  for (let n = 0; n < 10; n++) {
    t.is((await credit.reserve(request(accountId, { ...asked, holdId: `m${n}` }))).kind, 'ok');
  }
  const prefix = `${server.prefix}`;
  const contents = async () =>
    Object.entries(await contentsUnder(server.redis, prefix)).filter(([key]) =>
      key.includes(accountId),
    );
  const before = await contents();
  const eleventh = credit.reserve(request(accountId, { ...asked, holdId: 'm10' }));
  t.is(await refusalOf(eleventh), 'CENTRAL_WHATSAPP_CONNECT_REQUIRED');
  t.deepEqual(await contents(), before);
});

test('a wait for what is exposed is as long as it takes', async (t) => {
  const accountId = anAccount();
  await known(accountId, balanceOf(10 ** 9, 1));
  const send = (holdId: string, now: number) =>
    credit.reserve(request(accountId, { holdId, costMicros: 20 * unit, now }));
  t.is((await send('a', start)).kind, 'ok');
  t.is((await send('b', start + 2 * hour)).kind, 'ok');
  const refused = await send('c', start + 3 * hour);
  if (refused.kind !== 'refused') return t.fail();
  t.like(refused, { code: 'RATE_LIMIT_EXCEEDED', limitMicros: 40 * unit });
  t.is((await send('c', start + 3 * hour + refused.waitMs - 1)).kind, 'refused');
  t.is((await send('c', start + 3 * hour + refused.waitMs)).kind, 'ok');
});
