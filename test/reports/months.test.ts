// Months: a period read by them comes to what its days come to, whatever is counted late, and they close once.
import test from 'ava';
import fc from 'fast-check';
import { createMysql, type Database } from '../../lib/infra/mysql.ts';
import { day, hour } from '../../lib/kernel/clock.ts';
import { idAt, idBytes, newId } from '../../lib/kernel/ids.ts';
import { noFacts } from '../../lib/messages/rules.ts';
import { createMessageStore } from '../../lib/messages/store.ts';
import { closableUntil, monthOf, monthStart, partsOf } from '../../lib/reports/months.ts';
import { refreshAll } from '../../lib/reports/refresh.ts';
import { createRollupStore } from '../../lib/reports/rollup-store.ts';
import { type Asked, createTotalsStore } from '../../lib/reports/totals-store.ts';
import type { TestDatabase } from '../support/databases.ts';
import { createMigratedDatabase } from '../support/schema.ts';

let database: TestDatabase;
let db: Database;

test.before(async () => {
  database = await createMigratedDatabase('months');
  db = createMysql({ url: database.url, pool: 3 });
});
test.after.always(async () => {
  await db?.destroy();
  await database?.drop();
});

const days = fc.integer({ min: 19_000, max: 21_500 });

test('days and months of a period hold each of its days once, and no month too early', (t) => {
  fc.assert(
    fc.property(days, fc.nat({ max: 800 }), fc.nat({ max: 40 }), (first, length, ago) => {
      const span = { from: first * day, to: (first + length) * day };
      const until = monthOf(span.to) - (ago % 4);
      const parts = partsOf(span, until);
      const held = [
        ...parts.days,
        ...parts.months.map(({ from, to }) => ({
          from: monthStart(from) / day,
          to: monthStart(to) / day,
        })),
      ].flatMap(({ from, to }) => Array.from({ length: to - from }, (_, index) => from + index));
      t.deepEqual(
        held.toSorted((one, other) => one - other),
        Array.from({ length }, (_, index) => first + index),
      );
      t.true(parts.months.every(({ to }) => to <= until));
    }),
  );
  t.is(monthStart(monthOf(Date.UTC(2026, 1, 28, 23, 59))), Date.UTC(2026, 1, 1));
  t.is(closableUntil(Date.UTC(2026, 10, 1, 23)), monthOf(Date.UTC(2026, 9, 1)));
  t.is(closableUntil(Date.UTC(2026, 10, 2)), monthOf(Date.UTC(2026, 10, 1)));
});

const now = Date.UTC(2026, 10, 21, 9);
const clock = { now: () => now };
const accounts = [newId(), newId()];

/** A message of a moment, counted. */
const send = async (at: number, index: number): Promise<void> => {
  const accountId = accounts[index % 2] as string;
  const id = idAt(at).slice(0, 14) + newId().slice(14);
  const verifiedAt = index % 3 === 0 ? at + 7_000 : null;
  await createMessageStore(db, 60).merge(
    {
      ...{ id, accountId, mode: index % 5 === 0 ? 'test' : 'live', origin: 'send' },
      ...{ phone: '+14155550123', country: index % 4 === 0 ? 'EG' : 'US', requestId: 'r' },
      ...{ plan: 'pay_per_success', priceMicros: 50_000, idempotencyHash: null },
    },
    { ...noFacts, channel: 'whatsapp', acceptedAt: at, deliveredAt: at + 900, verifiedAt },
  );
  await createRollupStore(db).mark([{ slot: 0, accountId, hour: Math.floor(at / hour) }]);
};

const count = () => refreshAll({ rollupStore: createRollupStore(db), clock });

const ordered = (tallies: readonly object[]): string[] =>
  tallies.map((tally) => JSON.stringify(tally)).toSorted();

const sameByMonths = async (t: { deepEqual(one: unknown, other: unknown): void }) => {
  const { totals } = createTotalsStore(db);
  for (const by of ['country', 'channel', 'mode', undefined] as const) {
    for (const length of [365, 60, 30, 21]) {
      for (const accountId of accounts) {
        const { monthsUntil } = await createRollupStore(db).standing(accountId);
        const to = (Math.floor(now / day) + 1) * day;
        const modes = by === 'mode' ? (['live', 'test'] as const) : (['live'] as const);
        const asked: Asked = {
          from: to - length * day,
          to,
          spanMs: day,
          by,
          modes,
          latencies: true,
        };
        const [byDays, byMonths] = await Promise.all([
          totals(accountId, asked),
          totals(accountId, { ...asked, monthsUntil }),
        ]);
        t.deepEqual(ordered(byMonths), ordered(byDays));
      }
    }
  }
};

test.serial(
  'a year read by months is the year read by days, before and after late news',
  async (t) => {
    for (let index = 0; index < 60; index++) await send(now - index * 5.7 * day, index);
    await count();
    const store = createRollupStore(db);
    const until = closableUntil(now);
    let closed = 1;
    while (await store.closeMonth(until)) closed += 1;
    t.true(closed >= 10, `${closed}`);
    t.is((await store.standing(newId())).monthsUntil, until);
    t.false(await store.closeMonth(until), 'each is closed once');
    const rows = await db('rollup_months').where({ account_id: idBytes(accounts[0] as string) });
    t.true(rows.length > 10);
    t.true(rows.every(({ month }) => month < until));
    await sameByMonths(t);
    // A message of a month that is closed, a recount of one, and one of the month that goes on.
    for (const at of [Date.UTC(2026, 8, 30, 23, 59), Date.UTC(2026, 2, 1), now - hour]) {
      for (const index of [0, 1, 2, 3]) await send(at, index);
    }
    await count();
    await sameByMonths(t);
  },
);

test.serial('an installation without a message closes nothing and asks no more', async (t) => {
  const empty = await createMigratedDatabase('no_months');
  const other = createMysql({ url: empty.url, pool: 2 });
  try {
    const store = createRollupStore(other);
    t.false(await store.closeMonth(closableUntil(now)));
    t.is((await store.standing(newId())).monthsUntil, closableUntil(now));
  } finally {
    await other.destroy();
    await empty.drop();
  }
});
