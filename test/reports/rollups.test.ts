// Rollups equal a recount, whatever happened on the way: redelivery, reordering, late receipts, crashes, two counters.
import test from 'ava';
import fc from 'fast-check';
import { createMysql, type Database } from '../../lib/infra/mysql.ts';
import { day, hour } from '../../lib/kernel/clock.ts';
import { idAt, idBytes, idText, newId } from '../../lib/kernel/ids.ts';
import { silentLog } from '../../lib/kernel/log.ts';
import { messageEvent } from '../../lib/messages/events.ts';
import { type Facts, joinFacts, type Message, noFacts } from '../../lib/messages/rules.ts';
import { createMessageStore, type MessageStore } from '../../lib/messages/store.ts';
import { createMarker } from '../../lib/reports/mark.ts';
import { measures } from '../../lib/reports/measures.ts';
import { createRecounter } from '../../lib/reports/recount.ts';
import { createRecountStore } from '../../lib/reports/recount-store.ts';
import { refreshAll } from '../../lib/reports/refresh.ts';
import { createRollupStore } from '../../lib/reports/rollup-store.ts';
import { everyAccount } from '../../lib/reports/whose.ts';
import type { TestDatabase } from '../support/databases.ts';
import { type Known, modelRollup } from '../support/rollup-model.ts';
import { createMigratedDatabase } from '../support/schema.ts';

let database: TestDatabase;
let db: Database;
let other: Database;
let messages: MessageStore;

test.before(async () => {
  database = await createMigratedDatabase('rollups');
  db = createMysql({ url: database.url, pool: 4 });
  other = createMysql({ url: database.url, pool: 2 });
  messages = createMessageStore(db, 60);
});
test.after.always(async () => {
  await Promise.all([db?.destroy(), other?.destroy()]);
  await database?.drop();
});

const noon = Date.UTC(2026, 8, 14, 12);
const clock = { at: noon, now: () => clock.at };

const idOf = (at: number): string => idAt(at).slice(0, 14) + newId().slice(14);

const stored = async (table: 'hour' | 'day', accounts: readonly string[]): Promise<string[]> => {
  const rows = await db(`rollup_${table}s`).whereIn('account_id', accounts.map(idBytes));
  return rows
    .map(
      (row) =>
        `${[idText(row.account_id), row.mode, row[table], row.channel, row.country].join(' ')}: ${measures.map((name) => Number(row[name])).join(' ')}`,
    )
    .toSorted();
};

type News = { of: number; facts: Partial<Facts> };

const times = fc.integer({ min: 0, max: 400_000 });

const aMessage = fc.record({
  account: fc.nat({ max: 1 }),
  hoursAgo: fc.constantFrom(0, 1, 13),
  mode: fc.constantFrom('live' as const, 'test' as const),
  country: fc.constantFrom('US', 'EG'),
  plan: fc.constantFrom('trial' as const, 'pay_per_success' as const, 'per_message' as const),
  news: fc.array(
    fc.oneof(
      times.map((after) => ({ acceptedAt: after, channel: 'whatsapp' as const })),
      times.map((after) => ({ acceptedAt: after, channel: 'telegram' as const })),
      times.map((after) => ({ deliveredAt: after })),
      times.map((after) => ({ readAt: after })),
      times.map((after) => ({ verifiedAt: after })),
      times.map((after) => ({ expiredAt: after })),
      times.map((after) => ({ failedAt: after, failureReason: 'not_delivered' as const })),
    ),
    { minLength: 1, maxLength: 4 },
  ),
});

/** What befalls one piece of news: which process gets it, whether that one dies before it marked, what comes next. */
const aStep = fc.record({
  process: fc.nat({ max: 1 }),
  dies: fc.constantFrom(false, false, false, false, false, true),
  passes: fc.constantFrom(0, 300, 1_500, 6_500),
  next: fc.constantFrom('nothing', 'nothing', 'count', 'count twice', 'crash'),
  crashAt: fc.integer({ min: 1, max: 14 }),
});

type Step = typeof aStep extends fc.Arbitrary<infer S> ? S : never;

const count = (database: Database) =>
  refreshAll({ rollupStore: createRollupStore(database), clock });

/** A process that counts, and whose connection is gone before its statement number `at`. */
const crash = async (at: number): Promise<void> => {
  const doomed = createMysql({ url: database.url, pool: 1 });
  const [[{ id }]] = await doomed.raw('SELECT CONNECTION_ID() AS id');
  let left = at;
  doomed.on('query', () => {
    left -= 1;
    if (left === 0) throw new Error('cut off');
  });
  await count(doomed).catch(() => undefined);
  await db.raw('KILL CONNECTION ?', [id]).catch(() => undefined);
  await doomed.destroy();
};

const carryOn = async ({ next, crashAt }: Step): Promise<void> => {
  if (next === 'count') await count(db);
  if (next === 'count twice') await Promise.all([count(db), count(other)]);
  if (next === 'crash') await crash(crashAt);
};

/** Counts until nothing of these accounts is marked; a turn may still be taken by somebody who died with it. */
const countOut = async (accounts: readonly string[]): Promise<void> => {
  clock.at += 10_000;
  const store = createRollupStore(db);
  for (const accountId of accounts) {
    while ((await store.oldestMark(accountId)) !== undefined) await count(db);
  }
};

const absolute = (facts: Partial<Facts>, base: number): Facts =>
  Object.fromEntries(
    Object.entries({ ...noFacts, ...facts }).map(([name, value]) => [
      name,
      typeof value === 'number' ? value + base : value,
    ]),
  ) as Facts;

/** Delivers all news in the given order, some more than once, as the workers would; answers what is known then. */
const live = async (all: Known[], deliveries: { news: News; step: Step }[]): Promise<void> => {
  const markers = [0, 1].map(() => createMarker({ rollupStore: createRollupStore(db), clock }));
  const queue = [...deliveries];
  for (let item = queue.shift(); item !== undefined; item = queue.shift()) {
    const { news, step } = item;
    const known = all[news.of] as Known;
    const facts = absolute(
      news.facts,
      Number.parseInt(known.message.id.replace('-', '').slice(0, 12), 16),
    );
    known.facts = joinFacts(known.facts, facts);
    await messages.merge(known.message, facts);
    if (step.dies) {
      // Written, but the process died before it marked: the queue brings the event again, to whoever is there then.
      markers[step.process] = createMarker({ rollupStore: createRollupStore(db), clock });
      queue.push({ news, step: { ...step, dies: false, next: 'nothing' } });
    } else {
      const event = messageEvent('otp.delivered', known.message, clock.now());
      await markers[step.process]?.mark([event]);
    }
    clock.at += step.passes;
    await carryOn(step);
  }
};

test.serial('after any run of news the rollups are what a recount gives', async (t) => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(aMessage, { minLength: 1, maxLength: 8 }),
      fc.array(fc.tuple(fc.nat(), aStep), { minLength: 8, maxLength: 40 }),
      async (wanted, steps) => {
        clock.at = noon;
        const accounts = [newId(), newId()];
        const all = wanted.map(({ account, hoursAgo, mode, country, plan }): Known => {
          const message: Message = {
            ...{ id: idOf(noon - hoursAgo * hour), accountId: accounts[account] as string, mode },
            ...{ origin: 'send', phone: '+14155550123', country, requestId: 'r', plan },
            ...{ priceMicros: 50_000, idempotencyHash: null },
          };
          return { message, facts: noFacts };
        });
        const news = wanted.flatMap((one, of) => one.news.map((facts): News => ({ of, facts })));
        // Each piece at least once, in an order of chance, and some again.
        const order = steps.map(([pick, step], index) => ({
          news: news[index < news.length ? index : pick % news.length] as News,
          step,
          at: pick,
        }));
        const missed = news
          .slice(steps.length)
          .map((one) => ({ news: one, step: (steps[0] as [number, Step])[1], at: 0 }));
        await live(
          all,
          [...order, ...missed].toSorted((one, other) => one.at - other.at),
        );
        await countOut(accounts);
        t.deepEqual(await stored('hour', accounts), modelRollup(all, hour));
        t.deepEqual(await stored('day', accounts), modelRollup(all, day));
      },
    ),
    { numRuns: 20 },
  );
});

const aKnown = async (accountId: string, at: number): Promise<Known> => {
  const message: Message = {
    ...{ id: idOf(at), accountId, mode: 'live', origin: 'send', phone: '+14155550123' },
    ...{
      country: 'US',
      requestId: 'r',
      plan: 'per_message',
      priceMicros: 7,
      idempotencyHash: null,
    },
  };
  const facts: Facts = { ...noFacts, channel: 'whatsapp', acceptedAt: at, deliveredAt: at + 700 };
  await messages.merge(message, facts);
  return { message, facts };
};

test.serial('an hour that was marked again and again is counted once', async (t) => {
  clock.at = noon + 20 * day;
  const [accountId, other] = [newId(), newId()];
  const all = [await aKnown(accountId, clock.at), await aKnown(other, clock.at)];
  const store = createRollupStore(db);
  const at = Math.floor(clock.at / hour);
  const slots = Array.from({ length: 700 }, (_, index) => index + 1);
  await store.mark(
    [accountId, other].flatMap((id) => slots.map((slot) => ({ slot, accountId: id, hour: at }))),
  );
  const late = { slot: 900, accountId, hour: at };
  await store.mark([late]);
  let counted = 0;
  const listen = ({ sql }: { sql: string }) => {
    if (sql.startsWith('INSERT INTO rollup_hours')) counted += 1;
  };
  db.on('query', listen);
  t.is(await store.refresh({ throughSlot: 800, limit: 2 }), 1_400);
  db.off('query', listen);
  t.is(counted, 1);
  t.is(await store.oldestMark(other), undefined);
  t.is(await store.oldestMark(accountId), 900, 'what is not due yet stays marked');
  t.deepEqual(await stored('hour', [accountId, other]), modelRollup(all, hour));
  await store.refresh({ throughSlot: 900, limit: 2 });
});

test.serial('an hour marked for everybody is counted for everybody', async (t) => {
  clock.at = noon + 40 * day;
  const accounts = [newId(), newId()];
  const all = await Promise.all(accounts.map((id) => aKnown(id, clock.at)));
  const mark = { slot: 0, accountId: everyAccount, hour: Math.floor(clock.at / hour) };
  await createRollupStore(db).mark([mark]);
  t.is(await count(db), 1);
  t.deepEqual(await stored('hour', accounts), modelRollup(all, hour));
  t.deepEqual(await stored('day', accounts), modelRollup(all, day));
});

test.serial(
  'the nightly recount finds what drifted, reports it, and has it counted again',
  async (t) => {
    const at = noon + 80 * day;
    clock.at = at;
    const accountId = newId();
    const all = [await aKnown(accountId, at), await aKnown(accountId, at - 5 * hour)];
    const rollupStore = createRollupStore(db);
    const marks = all.map((_, index) => ({
      ...{ slot: 0, accountId, hour: Math.floor(at / hour) - index * 5 },
    }));
    await rollupStore.mark(marks);
    await count(db);
    const recounts = createRecountStore(db);
    const lines: string[] = [];
    const log = { ...silentLog, error: (_: object, text: string) => void lines.push(text) };
    const step = createRecounter({ rollupStore, recounts, clock, log });
    const before = (await recounts.state()).drifted;

    clock.at = (Math.floor(at / day) + 1) * day + hour;
    t.is(await step(), 'nothing', 'it is not night yet');
    clock.at += 2 * hour;
    t.is(await step(), 'compared');
    t.is(await step(), 'reported');
    t.is(await step(), 'nothing', 'once a night');
    t.is((await recounts.state()).drifted, before);
    t.deepEqual(lines, []);

    // A change that no event told of, and one whose event is on its way between the two looks.
    const silent = all[0] as Known;
    const late = all[1] as Known;
    const verified = { verifiedAt: at + 5_000 };
    clock.at += day;
    for (const one of [silent, late]) {
      one.facts = { ...one.facts, ...verified };
      await messages.merge(one.message, one.facts);
    }
    t.is(await step(), 'compared');
    await rollupStore.mark([{ slot: 0, accountId, hour: Math.floor(at / hour) - 5 }]);
    await count(db);
    t.is(await step(), 'reported');
    t.is((await recounts.state()).drifted, before + 1);
    t.deepEqual(lines, ['rollups differed from a recount and are counted again']);
    clock.at += 10_000;
    await count(db);
    t.deepEqual(await stored('hour', [accountId]), modelRollup(all, hour));

    await db('rollup_days')
      .where({ account_id: idBytes(accountId) })
      .update({ requested: 99 });
    clock.at += day;
    t.is(await step(), 'compared');
    t.is(await step(), 'reported');
    t.is((await recounts.state()).drifted, before + 2, 'days are compared with their hours');
    clock.at += 10_000;
    await count(db);
    t.deepEqual(await stored('day', [accountId]), modelRollup(all, day));
  },
);
