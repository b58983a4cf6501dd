// Every list and every analytics query as the database plans it: by an index, without sorting, whatever the filters.
import test from 'ava';
import { day, hour } from '../../lib/kernel/clock.ts';
import { idAt, idBytes, newId } from '../../lib/kernel/ids.ts';
import type { Client } from '../support/client.ts';
import { explain, type PlanRow } from '../support/explain.ts';
import { insertMessages } from '../support/made-messages.ts';
import { type Customer, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
let customer: Customer;

test.before(async () => {
  stack = await startStack('explain');
  customer = await stack.customer();
  await fill();
});
test.after.always(() => stack?.close());

let made = 0;
const idOf = (at: number): Buffer => {
  made += 1;
  return idBytes(`${idAt(at).slice(0, 14)}7000-9000-${String(made).padStart(12, '0')}`);
};

const deliveryStates = ['failed', 'delivered', 'delivered', 'delivered', 'delivered', 'held'];

/** Enough rows of this account and of others that no plan is a whim of an empty table. */
const fill = async (): Promise<void> => {
  const { db } = stack.api;
  const now = Date.now();
  const others = await Promise.all(Array.from({ length: 6 }, () => stack.customer()));
  await insertMessages(stack, customer, 2_000, 60 * day);
  for (const other of others) await insertMessages(stack, other, 400, 60 * day);
  for (const { accountId } of [customer, ...others]) {
    const account_id = idBytes(accountId);
    const rows = Array.from({ length: 600 }, (_, index) => now - index * hour);
    await db.batchInsert(
      'totp_log',
      rows.map((at, index) => ({
        ...{ id: idOf(at), account_id, mode: index % 9 === 0 ? 'test' : 'live', step: null },
        ...{ phone: '+14155550123', enrollment_id: Buffer.alloc(16, 1), price_micros: 0 },
        ...{ status: index % 7 === 0 ? 'failed' : 'verified', reason: null, request_id: 'r' },
      })),
      200,
    );
    await db.batchInsert(
      'webhook_deliveries',
      rows.map((at, index) => ({
        ...{ id: idOf(at), account_id, event_id: idBytes(newId()), body: '{}', created_at: at },
        ...{ type: index % 50 === 0 ? 'otp.failed' : 'otp.sent' },
        mode: index % 9 === 0 ? 'test' : 'live',
        status: deliveryStates[index % 7] ?? 'delivered',
      })),
      200,
    );
    await db.batchInsert(
      'ledger',
      rows.map((at, index) => ({
        ...{ account_id, seq: 1_000 + index, id: idOf(at), reference: `made:${index}` },
        ...{ kind: 'charge', counter: 'revenue', amount_micros: 0, balance_after: 0 },
      })),
      200,
    );
  }
  const tables = ['messages', 'totp_log', 'webhook_deliveries', 'ledger', 'rollup_days'];
  for (const table of [...tables, 'rollup_hours', 'message_events']) {
    await db.raw('ANALYZE TABLE ??', [table]);
  }
};

type Asked = { sql: string; bindings: unknown[] };

/** The statements that reading these paths takes. */
const statementsOf = async (
  paths: readonly string[],
  client: Client = customer.session,
): Promise<Asked[]> => {
  const asked = new Map<string, Asked>();
  const listen = ({ sql, bindings }: Asked): void => {
    if (/^\(?select/i.test(sql)) asked.set(sql, { sql, bindings });
  };
  stack.api.db.on('query', listen);
  for (const path of paths) {
    const answer = await client.get(`/v1/clients/${path}`);
    if (answer.status !== 200) throw new Error(`${path}: ${answer.text}`);
    const { keyPrefix } = stack.config;
    const limits = ['read', 'export'].map((name) => `${keyPrefix}${name}:r:${customer.accountId}`);
    for (const key of limits) await stack.api.redis.del(key);
  }
  stack.api.db.off('query', listen);
  return [...asked.values()];
};

/** These have a handful of rows in all. */
const tiny = new Set([
  ...['switches', 'rollup_state', 'rollup_heard', 'account_prices', 'prices'],
  // Read by every process on its own beat, whoever calls.
  ...['revocation_epochs', 'platform_settings'],
]);

const wrongWith = ({ select_type, table, type, key, rows, Extra }: PlanRow): string | undefined => {
  // Adding up what UNION ALL found, nothing to read, or a table that is always tiny.
  if (select_type === 'UNION RESULT' || table === null || tiny.has(table)) return undefined;
  // With one row in it (marks go as soon as they are counted) each way to read a table is the same.
  const whole = (type === 'ALL' || type === 'index') && rows !== 1;
  if (whole) return `reads all of ${table}`;
  if (key === null) return `has no key on ${table}`;
  return /filesort/i.test(Extra ?? '') ? `sorts ${table}` : undefined;
};

/** What is wrong with the plans of these statements, each with its SQL. */
const findings = async (statements: readonly Asked[]): Promise<string[]> => {
  const found: string[] = [];
  for (const { sql, bindings } of statements) {
    const plans = await explain(stack.api.db, sql, bindings);
    const wrong = plans.map(wrongWith).filter((one) => one !== undefined);
    if (wrong.length > 0) found.push(`${wrong.join(', ')}: ${sql} ${JSON.stringify(plans)}`);
  }
  return found;
};

const combine = (path: string, filters: readonly (readonly string[])[]): string[] =>
  filters.reduce<string[]>(
    (paths, values) =>
      paths.flatMap((one) => values.map((value) => (value === '' ? one : `${one}&${value}`))),
    [path],
  );

/** Lists that a key finds narrowed to its mode. */
const keyPaths = ['otps', 'totp/log', 'webhooks/deliveries'];

/** Every list in every combination of its filters, from the first page and from deep inside. */
const listPaths = async (limit: number): Promise<string[]> => {
  const { data } = await customer.session.get('/v1/clients/otps?limit=100');
  const deep = `before=${data.next_before}`;
  const since = new Date(Date.now() - 30 * day).toISOString();
  const until = new Date(Date.now() - 10 * day).toISOString();
  const statuses = ['', 'status=sent', 'status=verified', 'status=failed', 'status=expired'];
  const spans = ['', deep, `from=${since}&to=${until}`];
  const channels = ['', 'channel=whatsapp', 'channel=telegram'];
  const modes = ['', 'mode=live', 'mode=test'];
  const totpStatuses = ['', 'status=verified', 'status=failed'];
  return [
    `otps/recent?limit=${limit}`,
    ...combine(`otps?limit=${limit}`, [statuses, channels, modes, spans]),
    ...combine(`totp/log?limit=${limit}`, [totpStatuses, modes, ['', deep]]),
    ...combine(`transactions?limit=${limit}`, [['', deep]]),
    ...combine(`webhooks/deliveries?limit=${limit}`, [
      ['', 'status=failed', 'status=pending', 'status=held'],
      ['', 'type=otp.sent', 'type=otp.failed', 'type=billing.low_balance'],
      ['', 'mode=test'],
      spans,
    ]),
    `capacity-requests?limit=${limit}`,
  ];
};

test.serial('every list is read by an index, without sorting', async (t) => {
  const exports = ['otps/export?status=failed', 'transactions/export'];
  const ofKey = keyPaths.map((path) => `${path}?limit=50`);
  const statements = [
    ...(await statementsOf([...(await listPaths(50)), ...exports])),
    ...(await statementsOf(ofKey, customer.test)),
  ];
  t.true(statements.length > 40, `${statements.length}`);
  t.deepEqual(await findings(statements), []);
});

/** Statements that read more than the pages they are for: a plan with a key may still walk all rows of an account. */
const walking = async (statements: readonly Asked[], limit: number): Promise<string[]> =>
  stack.api.db.transaction(async (trx) => {
    const steps = async (): Promise<number> => {
      const [rows] = (await trx.raw("SHOW SESSION STATUS LIKE 'Handler_read_%'")) as [
        { Variable_name: string; Value: string }[],
      ];
      const counted = rows.filter(({ Variable_name: name }) => /_(next|prev)$/.test(name));
      const onward = counted.filter(({ Variable_name: name }) => !name.includes('rnd'));
      return onward.reduce((sum, { Value }) => sum + Number(Value), 0);
    };
    const found: string[] = [];
    for (const { sql, bindings } of statements) {
      const before = await steps();
      await trx.raw(sql, bindings as never[]);
      const read = (await steps()) - before;
      const pages = Math.max((sql.match(/limit/gi) ?? []).length, 1);
      if (read > pages * (limit + 2)) found.push(`${read} rows: ${sql}`);
    }
    return found;
  });

test.serial('a page costs its own rows, however many the account has', async (t) => {
  const ofKey = keyPaths.map((path) => `${path}?limit=10`);
  const statements = [
    ...(await statementsOf(await listPaths(10))),
    ...(await statementsOf(ofKey, customer.test)),
  ];
  t.deepEqual(await walking(statements, 10), []);
  const walk = {
    sql: 'SELECT * FROM messages WHERE account_id = ? AND country = ? ORDER BY id DESC LIMIT 10',
    bindings: [idBytes(customer.accountId), 'XX'],
  };
  t.regex((await walking([walk], 10))[0] ?? '', /^\d{4} rows/, 'and one that walks is found');
});

test.serial('one message with all its steps', async (t) => {
  const { data } = await customer.session.get('/v1/clients/otps/recent?limit=1');
  const [item] = data.items as { message_id: string }[];
  t.deepEqual(await findings(await statementsOf([`otps/${item?.message_id}/timeline`])), []);
});

test.serial('every analytics call, for short and long periods, and the limits', async (t) => {
  const calls = ['', '/timeseries', '/funnel', '/channels'];
  const paths = calls.flatMap((call) =>
    [1, 2, 30, 365].map((period) => `analytics${call}?period=${period}`),
  );
  const statements = await statementsOf([...paths, 'limits']);
  t.true(statements.some(({ sql }) => sql.includes('rollup_hours')));
  t.true(statements.some(({ sql }) => sql.includes('rollup_days')));
  t.false(
    statements.some(({ sql }) => /\bfrom `?messages\b[\s\S]*group by/i.test(sql)),
    'nothing is counted while somebody waits',
  );
  t.deepEqual(await findings(statements), []);
});

test.serial('a plan that sorts or reads everything is found', async (t) => {
  const bindings = [idBytes(customer.accountId)];
  const sorted =
    'SELECT * FROM messages FORCE INDEX (messages_by_account) WHERE account_id = ? ORDER BY phone';
  t.regex((await findings([{ sql: sorted, bindings }]))[0] ?? '', /^sorts messages/);
  const whole = 'SELECT * FROM messages WHERE price_micros = 7';
  t.regex((await findings([{ sql: whole, bindings: [] }]))[0] ?? '', /^reads all of messages/);
});
