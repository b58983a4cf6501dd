// Millions of messages made inside the database: half of them one account's, spread over half a year, all told apart.
import type { Database } from '../../lib/infra/mysql.ts';
import { day, hour } from '../../lib/kernel/clock.ts';
import { idBytes, newId } from '../../lib/kernel/ids.ts';
import { cutSql, partitionedTables, week, weekOf } from '../../lib/kernel/partitions.ts';
import { closableUntil } from '../../lib/reports/months.ts';
import { refreshAll } from '../../lib/reports/refresh.ts';
import { createRollupStore } from '../../lib/reports/rollup-store.ts';
import { everyAccount } from '../../lib/reports/whose.ts';

export const spanDays = 175;
const otherAccounts = 199;
const chunk = 50_000;
const atOnce = 3;

const countries = "'US','EG','DE','SA','GB','FR','IN','BR','NG','JO'";

/** A number from 0 to 999 that looks like chance and is the same every time. */
const chance = (of: number): string => `((i * ${of} + i DIV 7) % 1009 % 1000)`;

const millis = '(:start + FLOOR(i * :step))';
const idSql = `UNHEX(CONCAT(LPAD(HEX(${millis}), 12, '0'), '7000', '8', LPAD(HEX(i), 15, '0')))`;

/** Weeks as the upkeep would have made them. */
const cutIntoWeeks = async (db: Database, now: number): Promise<void> => {
  const first = weekOf(now - spanDays * day);
  const mondays = Array.from(
    { length: (weekOf(now) - first) / week + 5 },
    (_, index) => first + index * week,
  );
  for (const one of partitionedTables) await db.raw(cutSql(one, mondays));
};

const makeNumbers = async (db: Database): Promise<void> => {
  await db.raw('CREATE TABLE bench_numbers (n INT UNSIGNED PRIMARY KEY)');
  const rows = Array.from({ length: chunk }, (_, n) => ({ n }));
  await db.batchInsert('bench_numbers', rows, 5_000);
};

const makeAccounts = async (db: Database, named: readonly string[]): Promise<void> => {
  await db.raw('CREATE TABLE bench_accounts (n INT UNSIGNED PRIMARY KEY, id BINARY(16) NOT NULL)');
  const ids = Array.from({ length: otherAccounts }, (_, n) => named[n] ?? newId());
  await db('bench_accounts').insert(ids.map((id, n) => ({ n, id: idBytes(id) })));
};

type Filling = { big: Buffer; start: number; step: number; from: number; count: number };

const rowsSql = (every: number): string =>
  `(SELECT i, IF(i DIV ${every} % 2 = 0, :big, a.id) AS account_id, ${idSql} AS id, ${millis} AS at
    FROM (SELECT :from + n * ${every} AS i FROM bench_numbers WHERE :from + n * ${every} < :count) numbers
    JOIN bench_accounts a ON a.n = (i DIV ${every * 2}) % ${otherAccounts} ORDER BY i) made`;

const messagesSql = `INSERT INTO messages (id, account_id, mode, origin, phone, country, request_id, plan, price_micros,
    status, channel, accepted_at, expires_at, delivered_at, verified_at, failed_at, failure_reason)
  SELECT id, account_id, IF(${chance(31)} < 50, 'test', 'live'), 'send', CONCAT('+1415', 2000000 + i % 7000000),
    ELT(1 + ${chance(17)} % 10, ${countries}), 'bench', 'pay_per_success', 50000,
    CASE WHEN ${chance(13)} < 650 THEN 'verified' WHEN ${chance(13)} < 900 THEN 'expired' ELSE 'failed' END,
    CASE WHEN ${chance(13)} >= 950 THEN NULL WHEN ${chance(29)} < 80 THEN 'telegram' ELSE 'whatsapp' END,
    IF(${chance(13)} < 950, at + 300, NULL), at + 300000,
    IF(${chance(13)} < 900, at + 300 + ${chance(41)} * 9, NULL),
    IF(${chance(13)} < 650, at + 5000 + ${chance(43)} * 40, NULL),
    IF(${chance(13)} >= 900, at + 2000, NULL), IF(${chance(13)} >= 900, 'not_on_channel', NULL)
  FROM ${rowsSql(1)}`;

const totpSql = `INSERT INTO totp_log (id, account_id, mode, phone, enrollment_id, step, status, reason, price_micros, request_id)
  SELECT id, account_id, IF(${chance(31)} < 50, 'test', 'live'), '+14155550123', account_id, NULL,
    IF(${chance(13)} < 100, 'failed', 'verified'), NULL, 2000, 'bench' FROM ${rowsSql(10)}`;

const ledgerSql = `INSERT INTO ledger (account_id, seq, id, reference, kind, counter, amount_micros, balance_after)
  SELECT account_id, 1000 + i, id, CONCAT('bench:', i), 'charge', 'revenue', -50000, 0 FROM ${rowsSql(10)}`;

/**
 * Fills an empty database: `count` messages, a tenth as many TOTP attempts and postings, all rollups. Half of them are
 * the account `big`'s; the first of the other 199 accounts are `others`.
 */
export const fillMessages = async (
  db: Database,
  given: { count: number; big: string; others: readonly string[]; now: number },
): Promise<void> => {
  const { count, big, others, now } = given;
  await cutIntoWeeks(db, now);
  await makeNumbers(db);
  await makeAccounts(db, others);
  const start = now - spanDays * day;
  const fill = { big: idBytes(big), start, step: (spanDays * day) / count, count };
  for (let from = 0; from < count; from += chunk * atOnce) {
    const chunks = Array.from({ length: atOnce }, (_, index) => from + index * chunk);
    await Promise.all(
      chunks
        .filter((first) => first < count)
        .map((first) => db.raw(messagesSql, { ...fill, from: first } satisfies Filling)),
    );
  }
  for (let from = 0; from < count; from += chunk * 10) {
    await db.raw(totpSql, { ...fill, from } satisfies Filling);
    await db.raw(ledgerSql, { ...fill, from } satisfies Filling);
  }
  await countAll(db, now);
};

/** Rollups of everything, as an upgrade of a running service would make them. */
const countAll = async (db: Database, now: number): Promise<void> => {
  const rollupStore = createRollupStore(db);
  const first = Math.floor((now - spanDays * day) / hour);
  const hours = Array.from({ length: spanDays * 24 + 1 }, (_, index) => first + index);
  await rollupStore.mark(hours.map((at) => ({ slot: 0, accountId: everyAccount, hour: at })));
  while ((await rollupStore.oldestMark(everyAccount)) !== undefined) {
    await refreshAll({ rollupStore, clock: { now: () => now } });
  }
  while (await rollupStore.closeMonth(closableUntil(now)));
  for (const table of [
    'messages',
    'totp_log',
    'ledger',
    'rollup_months',
    'rollup_days',
    'rollup_hours',
  ]) {
    await db.raw('ANALYZE TABLE ??', [table]);
  }
};
