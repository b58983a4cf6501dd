// The customers of the benchmark: so many accounts that none meets a limit, inserted in bulk as the product keeps them.
import type { Database } from '../../lib/infra/mysql.ts';
import { idBytes, newId } from '../../lib/kernel/ids.ts';
import { keyFacts, keyHash, newKeyText } from '../../lib/keys/rules.ts';
import { fundedRow, insertLedger } from '../support/money.ts';

const perStatement = 500;
/** More than a run can spend. */
const usdEach = 100_000;

const accountRow = (id: string, number: number, now: number) => ({
  id: idBytes(id),
  email: `bench${number}@tessera.example`,
  email_key: `bench${number}@tessera.example`,
  // Nobody logs in.
  password_hash: '-',
  name: `Benchmark ${number}`,
  phone: '+14155550100',
  company: null,
  locale: 'en',
  status: 'active',
  billing_plan: 'pay_per_success',
  tier: 'standard',
  tier_per_minute: null,
  tier_expires_at: null,
  created_at: now,
});

const keyRow = (accountId: string, key: string, now: number) => {
  const { prefix, last4 } = keyFacts(key, 'live');
  return {
    id: idBytes(newId()),
    account_id: idBytes(accountId),
    name: 'Benchmark',
    mode: 'live',
    secret_hash: keyHash(key),
    ...{ prefix, last4, created_at: now, expires_at: null, revoked_at: null },
  };
};

/** Makes `count` active accounts with a live key each; answers keys and ids, in one order. */
export const seedAccounts = async (
  db: Database,
  count: number,
): Promise<{ keys: string[]; ids: string[] }> => {
  const now = Date.now();
  const made = Array.from({ length: count }, (_, number) => {
    const [id, key] = [newId(), newKeyText('live')];
    const { account: money, ledger } = fundedRow(id, usdEach, now);
    const account = { ...accountRow(id, number, now), ...money };
    return { id, key, account, ledger, row: keyRow(id, key, now) };
  });
  await db.batchInsert(
    'accounts',
    made.map(({ account }) => account),
    perStatement,
  );
  await db.batchInsert(
    'api_keys',
    made.map(({ row }) => row),
    perStatement,
  );
  await insertLedger(
    db,
    made.map(({ ledger }) => ledger),
  );
  return { keys: made.map(({ key }) => key), ids: made.map(({ id }) => id) };
};
