// The ledger in MySQL: rows are only ever added, gapless per account, each reference once, the balance with them.
import { advanceEpoch } from '../accounts/epoch-store.ts';
import { type Database, isDuplicateKey, withLockRetry } from '../infra/mysql.ts';
import type { EventWire } from '../jobs.ts';
import { idBytes, idText, newId } from '../kernel/ids.ts';
import { insertNews } from '../messages/news-store.ts';
import { newsOf } from './news.ts';
import { applyPosting, type Balance, counterOf, type Posting } from './rules.ts';
import { createSentStore } from './sent-store.ts';

type Row = Record<string, unknown>;

const balanceColumns = [
  ...['id', 'balance_micros', 'ledger_seq', 'spent_hour', 'spent_micros', 'deposited_at'],
  ...['trial_granted', 'trial_used'],
];

const toBalance = (row: Row): Balance => ({
  micros: Number(row.balance_micros),
  seq: Number(row.ledger_seq),
  spentHour: Number(row.spent_hour),
  spentMicros: Number(row.spent_micros),
  deposited: row.deposited_at !== null,
  trialGranted: Number(row.trial_granted),
  trialUsed: Number(row.trial_used),
});

/** What became of a posting: written now, written before, or for an account that is not there. */
export type Posted = 'posted' | 'known' | 'no_account';

export type PostResult = {
  outcomes: Posted[];
  /** Balances before and after, of the accounts that changed. */
  changed: Map<string, { before: Balance; after: Balance }>;
  /** What the accounts are to be told of it. */
  told: EventWire[];
};

const lockAccounts = async (
  trx: Database,
  ids: readonly string[],
): Promise<Map<string, Balance>> => {
  const rows = await trx<Row>('accounts')
    .whereIn('id', ids.map(idBytes))
    // Everybody locks in this order, so nobody waits in a circle.
    .orderBy('id')
    .forUpdate()
    .select(balanceColumns);
  return new Map(rows.map((row) => [idText(row.id as Buffer), toBalance(row)]));
};

const nameOf = (accountId: string, reference: string): string => `${accountId} ${reference}`;

// Written out: at thousands a second the query builder costs more than the database.
const findKnown = async (trx: Database, postings: readonly Posting[]): Promise<Set<string>> => {
  const pairs = postings.flatMap(({ accountId, reference }) => [idBytes(accountId), reference]);
  const any = postings.map(() => '(account_id = ? AND reference = ?)').join(' OR ');
  const sql = `SELECT account_id, reference FROM ledger WHERE ${any}`;
  const [rows] = (await trx.raw(sql, pairs)) as [Row[]];
  return new Set(
    rows.map((row) => nameOf(idText(row.account_id as Buffer), String(row.reference))),
  );
};

const columns = [
  ...['account_id', 'seq', 'id', 'reference', 'kind', 'counter', 'amount_micros'],
  ...['balance_after', 'plan', 'price_micros', 'message_id', 'note'],
];

/** The values of a row, in the order of `columns`. */
const toRow = (posting: Posting, balance: Balance): unknown[] => [
  ...[idBytes(posting.accountId), balance.seq, idBytes(newId()), posting.reference],
  ...[posting.kind, counterOf[posting.kind], posting.amountMicros, balance.micros],
  ...[posting.plan, posting.priceMicros],
  ...[posting.messageId === null ? null : idBytes(posting.messageId), posting.note],
];

const writeBalances = async (
  trx: Database,
  changed: PostResult['changed'],
  now: number,
): Promise<void> => {
  if (changed.size === 0) return;
  const rows = [...changed].map(
    () => 'SELECT ? AS id, ? AS micros, ? AS seq, ? AS hour, ? AS spent, ? AS used, ? AS deposited',
  );
  await trx.raw(
    `UPDATE accounts a JOIN (${rows.join(' UNION ALL ')}) n ON n.id = a.id
     SET a.balance_micros = n.micros, a.ledger_seq = n.seq, a.spent_hour = n.hour,
       a.spent_micros = n.spent, a.trial_used = n.used,
       a.deposited_at = COALESCE(a.deposited_at, n.deposited)`,
    [...changed].flatMap(([id, { after }]) => [
      ...[idBytes(id), after.micros, after.seq, after.spentHour, after.spentMicros],
      ...[after.trialUsed, after.deposited ? now : null],
    ]),
  );
};

type Plan = Pick<PostResult, 'outcomes' | 'changed'> & { rows: unknown[][] };

/** Decides posting by posting, in order, what is written; pure but for the ids of the rows. */
const plan = (
  postings: readonly Posting[],
  locked: ReadonlyMap<string, Balance>,
  written: ReadonlySet<string>,
): Plan => {
  const balances = new Map(locked);
  const known = new Set(written);
  const rows: unknown[][] = [];
  const changed: PostResult['changed'] = new Map();
  const outcomes = postings.map((posting): Posted => {
    const { accountId, reference } = posting;
    const name = nameOf(accountId, reference);
    const balance = balances.get(accountId);
    if (!balance) return 'no_account';
    if (known.has(name)) return 'known';
    const after = applyPosting(balance, posting);
    known.add(name);
    balances.set(accountId, after);
    changed.set(accountId, { before: changed.get(accountId)?.before ?? balance, after });
    rows.push(toRow(posting, after));
    return 'posted';
  });
  return { outcomes, changed, rows };
};

/**
 * Writes the rows of postings that are hardly ever known already: that is learnt from the unique key, and only then
 * asked which of them are.
 */
const insertRows = async (
  trx: Database,
  postings: readonly Posting[],
  balances: ReadonlyMap<string, Balance>,
): Promise<Plan> => {
  const write = async (planned: Plan): Promise<Plan> => {
    const insert = `INSERT INTO ledger (${columns.join(', ')}) VALUES ?`;
    if (planned.rows.length > 0) await trx.raw(insert, [planned.rows as unknown as string]);
    return planned;
  };
  try {
    return await write(plan(postings, balances, new Set()));
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
    return write(plan(postings, balances, await findKnown(trx, postings)));
  }
};

export type LedgerStore = ReturnType<typeof createLedgerStore>;

export type LedgerRow = {
  id: string;
  seq: number;
  kind: Posting['kind'];
  amountMicros: number;
  balanceAfter: number;
  reference: string;
  messageId: string | null;
};

const fromLedgerRow = (row: Row): LedgerRow => ({
  id: idText(row.id as Buffer),
  seq: Number(row.seq),
  kind: row.kind as Posting['kind'],
  amountMicros: Number(row.amount_micros),
  balanceAfter: Number(row.balance_after),
  reference: String(row.reference),
  messageId: row.message_id === null ? null : idText(row.message_id as Buffer),
});

export const createLedgerStore = (db: Database) => ({
  ...createSentStore(db),

  /**
   * Writes postings of any accounts in one commit. Each account is locked meanwhile, so its sequence has no gap; the
   * unique key of references makes each posting one.
   */
  post: (postings: readonly Posting[], now: number): Promise<PostResult> =>
    withLockRetry(() =>
      db.transaction(async (trx) => {
        const ids = new Set(postings.map(({ accountId }) => accountId));
        const balances = await lockAccounts(trx, [...ids]);
        const result = await insertRows(trx, postings, balances);
        await writeBalances(trx, result.changed, now);
        const told = [...result.changed].flatMap(([id, change]) => newsOf(id, change, now));
        await insertNews(trx, told);
        const { outcomes, changed } = result;
        return { outcomes, changed, told };
      }),
    ),

  balance: async (accountId: string): Promise<Balance | undefined> => {
    const row = await db<Row>('accounts')
      .where({ id: idBytes(accountId) })
      .first(balanceColumns);
    return row === undefined ? undefined : toBalance(row);
  },

  /** What was booked for an account under a reference. */
  findPosting: async (accountId: string, reference: string): Promise<LedgerRow | undefined> => {
    const row = await db<Row>('ledger')
      .where({ account_id: idBytes(accountId), reference })
      .first();
    return row === undefined ? undefined : fromLedgerRow(row);
  },

  /**
   * Newest first by sequence, since the ids of several workers follow several clocks; at most `limit`, behind the row
   * with the id `before`.
   */
  list: async (
    accountId: string,
    { before, limit }: { before: string | undefined; limit: number },
  ): Promise<LedgerRow[]> => {
    const account_id = idBytes(accountId);
    const query = db<Row>('ledger').where({ account_id }).orderBy('seq', 'desc').limit(limit);
    if (before !== undefined) {
      const row = db<Row>('ledger').where({ account_id, id: idBytes(before) });
      query.where('seq', '<', row.select('seq').limit(1));
    }
    return (await query).map(fromLedgerRow);
  },

  /** Changes the plan, and writes what is to be told of it; false when another plan is in force. */
  setPlan: (
    accountId: string,
    from: string,
    to: string,
    told: readonly EventWire[] = [],
  ): Promise<boolean> =>
    db.transaction(async (trx) => {
      const account = { id: idBytes(accountId), billing_plan: from };
      const changed = await trx('accounts').where(account).update({ billing_plan: to });
      if (changed === 0) return false;
      await insertNews(trx, told);
      await advanceEpoch(trx, accountId);
      return true;
    }),

  grantTrial: async (accountId: string, verifications: number): Promise<void> => {
    await db('accounts')
      .where({ id: idBytes(accountId) })
      .update({ trial_granted: verifications });
  },
});
