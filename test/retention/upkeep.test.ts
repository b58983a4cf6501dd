// Half a year of upkeep on a real database: weeks come and go, and with them only what is past its retention.
import test from 'ava';
import { createLedgerStore } from '../../lib/billing/ledger-store.ts';
import { createReconcileStore } from '../../lib/billing/reconcile-store.ts';
import { createMysql, type Database } from '../../lib/infra/mysql.ts';
import { day, hour } from '../../lib/kernel/clock.ts';
import { idAt, idBytes, idTime, newId } from '../../lib/kernel/ids.ts';
import { silentLog } from '../../lib/kernel/log.ts';
import {
  firstName,
  lastName,
  partitionedTables,
  week,
  weekOf,
} from '../../lib/kernel/partitions.ts';
import { noFacts } from '../../lib/messages/rules.ts';
import { createMessageStore } from '../../lib/messages/store.ts';
import { refreshAll } from '../../lib/reports/refresh.ts';
import { createRollupStore } from '../../lib/reports/rollup-store.ts';
import { createReportStore } from '../../lib/reports/store.ts';
import { createRetentionStore } from '../../lib/retention/store.ts';
import { keepUp } from '../../lib/retention/upkeep.ts';
import { createDatabase, type TestDatabase } from '../support/databases.ts';
import { explain } from '../support/explain.ts';
import { createMigratedDatabase, dumpOf, migrate } from '../support/schema.ts';

let database: TestDatabase;
let db: Database;

test.before(async () => {
  database = await createMigratedDatabase('retention');
  db = createMysql({ url: database.url, pool: 6 });
});
test.after.always(async () => {
  await db?.destroy();
  await database?.drop();
});

// Within a week, so that a step of whole weeks stays in the same place of it.
const start = weekOf(Date.now()) + 2 * day;
const clock = { at: start, now: () => clock.at };
const retentionDays = 30;
const accountId = newId();

const lines: string[] = [];
const log = {
  ...silentLog,
  warn: (_: object, text: string) => void lines.push(text),
  error: (_: object, text: string) => void lines.push(text),
};
const upkeep = () =>
  keepUp({ retention: createRetentionStore(db), clock, log, config: { retentionDays } });

/** A message of now, with an event and its rollups. */
const send = async (): Promise<string> => {
  const id = idAt(clock.at).slice(0, 14) + newId().slice(14);
  await createMessageStore(db, 60).merge(
    {
      ...{ id, accountId, mode: 'live', origin: 'send', phone: '+14155550123', country: 'US' },
      ...{ requestId: 'r', plan: 'trial', priceMicros: 0, idempotencyHash: null },
    },
    { ...noFacts, channel: 'whatsapp', acceptedAt: clock.at },
  );
  await db('message_events').insert({
    ...{ message_id: idBytes(id), event_id: idBytes(newId()), account_id: idBytes(accountId) },
    ...{ type: 'otp.sent', at: clock.at, request_id: 'r', data: '{}' },
  });
  await createRollupStore(db).mark([{ slot: 0, accountId, hour: Math.floor(clock.at / hour) }]);
  await refreshAll({ rollupStore: createRollupStore(db), clock });
  return id;
};

const countOf = async (table: string): Promise<number> =>
  Number((await db(table).count({ count: '*' }))[0]?.count);

const list = async (): Promise<string[]> => {
  const filter = { before: undefined, status: undefined, channel: undefined, mode: undefined };
  const found = await createReportStore(db).list(accountId, {
    ...{ ...filter, from: undefined, to: undefined, limit: 1_000 },
  });
  return found.map(({ id }) => id);
};

test.serial(
  'what is older than the retention goes by the week, all else stays and is found',
  async (t) => {
    const sent: string[] = [];
    const names = createRetentionStore(db).names;
    for (let weeks = 0; weeks < 12; weeks++) {
      sent.push(await send());
      t.true(await upkeep());
      clock.at += week;
    }
    clock.at -= week;
    const kept = sent.filter((id) => weekOf(idTime(id)) + week > clock.at - retentionDays * day);
    t.is(kept.length, 5, 'thirty days, and what is left of their first week');
    t.deepEqual(await list(), kept.toReversed());
    t.is(await countOf('message_events'), kept.length);
    t.is(await countOf('rollup_hours'), kept.length);
    t.is(await countOf('rollup_days'), sent.length, 'daily figures stay');
    const { countShared } = createLedgerStore(db);
    const used = async (most: number) => (await countShared(accountId, most)).unverified;
    t.is(await used(100), sent.length, 'what was sent on trial stays sent');
    t.is(await used(7), 7);
    for (const { table } of partitionedTables) {
      const all = await names(table);
      t.is(all.length, 5 + 4 + 1, table);
      t.false(all.includes(firstName));
      t.is(all.at(-1), lastName);
    }
    t.deepEqual(lines, []);
  },
);

test.serial('a late mark of an hour that is gone leaves its day alone', async (t) => {
  const days = await db('rollup_days').where({ account_id: idBytes(accountId) });
  await createRollupStore(db).mark([{ slot: 0, accountId, hour: Math.floor(start / hour) }]);
  t.is(await refreshAll({ rollupStore: createRollupStore(db), clock }), 1);
  t.deepEqual(await db('rollup_days').where({ account_id: idBytes(accountId) }), days);
});

test.serial(
  'hours that are about to go are not counted from, whichever table goes first',
  async (t) => {
    const retention = createRetentionStore(db);
    const keptFrom = async () => (await db('rollup_state').where({ id: 1 }))[0]?.kept_from_hour;
    const before = Number(await keptFrom());
    await retention.keepFrom(before - 5);
    t.is(Number(await keptFrom()), before, 'what is gone does not come back');
    // Messages that cannot be dropped now, hourly figures that can.
    clock.at += week;
    const drop: typeof retention.drop = (table, names) =>
      table.table === 'messages' ? Promise.reject(new Error('busy')) : retention.drop(table, names);
    const keepFrom: typeof retention.keepFrom = async (at) => {
      if (calls++ === 0) throw new Error('busy');
      await retention.keepFrom(at);
    };
    let calls = 0;
    await keepUp({
      retention: { ...retention, drop, keepFrom },
      clock,
      log,
      config: { retentionDays },
    });
    t.is(Number(await keptFrom()), before + week / hour);
    t.deepEqual(lines.splice(0), ['weeks not changed']);
    t.true(await upkeep());
  },
);

test.serial('the books do not miss messages that are past their retention', async (t) => {
  const row = (seq: number, messageId: string) => ({
    ...{ account_id: idBytes(accountId), seq, id: idBytes(newId()), kind: 'charge' },
    ...{ reference: `charge:${messageId}`, counter: 'revenue', amount_micros: 0, balance_after: 0 },
    message_id: idBytes(messageId),
  });
  const gone = idAt(start).slice(0, 14) + newId().slice(14);
  await db('ledger').insert([row(1, gone)]);
  const books = createReconcileStore(db);
  const check = 'nothing is charged for a message that is not there';
  t.deepEqual(await books.run(check, clock.at), []);
  const never = idAt(clock.at - day).slice(0, 14) + newId().slice(14);
  await db('ledger').insert([row(2, never)]);
  t.is((await books.run(check, clock.at)).length, 1);
});

test.serial(
  'after weeks without a worker every row gets its week, and two workers do it once',
  async (t) => {
    const before = await list();
    clock.at += 8 * week;
    const late = [await send()];
    clock.at += week;
    late.push(await send());
    t.deepEqual((await Promise.all([upkeep(), upkeep()])).toSorted(), [false, true]);
    t.deepEqual(lines, []);
    const all = await list();
    t.deepEqual(all.slice(0, 2), late.toReversed());
    t.deepEqual(
      all.slice(2),
      before.filter((id) => weekOf(idTime(id)) + week > clock.at - retentionDays * day),
    );
    const sql = 'SELECT * FROM messages WHERE id = ?';
    const plan = await explain(db, sql, [idBytes(late[0] ?? '')]);
    t.regex(plan[0]?.partitions ?? '', /^w[1-8]\d{7}$/, 'one week, and not the last partition');
  },
);

test.serial('a table that is busy is left alone, and its traffic goes on', async (t) => {
  clock.at += week;
  const holder = await db.transaction();
  await holder('messages')
    .where({ account_id: idBytes(accountId) })
    .first();
  t.true(await upkeep());
  t.deepEqual(lines, ['weeks not changed']);
  await holder.rollback();
  t.true(await upkeep());
  t.is(lines.length, 1);
});

test('the database that tests get is what the migrations make', async (t) => {
  const [replayed, migrated] = await Promise.all([
    createMigratedDatabase('replayed'),
    createDatabase('migrated'),
  ]);
  try {
    await migrate(migrated.url);
    // When and in which batch a migration ran is all that may differ.
    const timeless = (sql: string) => sql.replaceAll(/ ?'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d'/g, '');
    t.is(timeless(await dumpOf(replayed.url)), timeless(await dumpOf(migrated.url)));
  } finally {
    await Promise.all([replayed.drop(), migrated.drop()]);
  }
});
