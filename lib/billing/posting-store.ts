// Writing the ledger in MySQL: rows are only ever added, gapless per account, each reference once, the balance with them.
import { advanceEpochs } from '../accounts/epoch-store.ts';
import { type Database, isDuplicateKey, withLockRetry } from '../infra/mysql.ts';
import type { EventWire } from '../jobs.ts';
import { idBytes, idText, newId } from '../kernel/ids.ts';
import { insertNews } from '../messages/news-store.ts';
import { newsOf } from './news.ts';
import {
  applyPosting,
  type Balance,
  type Change,
  counterOf,
  endsTrial,
  type Posting,
} from './rules.ts';

type Row = Record<string, unknown>;

/** The columns of an account that `toBalance` reads. */
export const balanceColumns = [
  ...['id', 'balance_micros', 'ledger_seq', 'spent_hour', 'spent_micros', 'deposited_at'],
  ...['trial_granted', 'trial_used'],
];

export const toBalance = (row: Row): Balance => ({
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
  /** The balances of all accounts that were posted to, now or before. */
  balances: Map<string, Balance>;
  /** Accounts that pay per success from now on. */
  trialsEnded: string[];
  /** What the accounts are to be told of it. */
  told: EventWire[];
};

type Locked = { balances: Map<string, Balance>; onTrial: Set<string> };

const lockAccounts = async (trx: Database, postings: readonly Posting[]): Promise<Locked> => {
  const ids = new Set(postings.map(({ accountId }) => accountId));
  const rows = await trx<Row>('accounts')
    .whereIn('id', [...ids].map(idBytes))
    // Everybody locks in this order, so nobody waits in a circle.
    .orderBy('id')
    .forUpdate()
    .select(...balanceColumns, 'billing_plan');
  const named = rows.map((row) => ({ row, id: idText(row.id as Buffer) }));
  return {
    balances: new Map(named.map(({ id, row }) => [id, toBalance(row)])),
    onTrial: new Set(named.flatMap(({ id, row }) => (row.billing_plan === 'trial' ? [id] : []))),
  };
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
  changed: ReadonlyMap<string, Change>,
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

/** These accounts pay per success: part of the commit that brings their trial to its end. */
const endTrials = async (trx: Database, ids: readonly string[]): Promise<void> => {
  if (ids.length === 0) return;
  await trx('accounts').whereIn('id', ids.map(idBytes)).update({ billing_plan: 'pay_per_success' });
};

type Plan = Pick<PostResult, 'outcomes' | 'balances'> & {
  /** The accounts that are written to. */
  changed: Map<string, Change>;
  rows: unknown[][];
};

/** Decides posting by posting, in order, what is written; pure but for the ids of the rows. */
const plan = (
  postings: readonly Posting[],
  { balances: locked, onTrial }: Locked,
  written: ReadonlySet<string>,
): Plan => {
  const balances = new Map(locked);
  const known = new Set(written);
  const rows: unknown[][] = [];
  const changed: Plan['changed'] = new Map();
  const outcomes = postings.map((posting): Posted => {
    const { accountId, reference } = posting;
    const name = nameOf(accountId, reference);
    const balance = balances.get(accountId);
    if (!balance) return 'no_account';
    if (known.has(name)) return 'known';
    const after = applyPosting(balance, posting);
    const before = changed.get(accountId)?.before ?? balance;
    known.add(name);
    balances.set(accountId, after);
    changed.set(accountId, {
      before,
      after,
      trialEnds: onTrial.has(accountId) && endsTrial(after),
    });
    rows.push(toRow(posting, after));
    return 'posted';
  });
  return { outcomes, balances, changed, rows };
};

/**
 * Writes the rows of postings that are hardly ever known already: that is learnt from the unique key, and only then
 * asked which of them are.
 */
const insertRows = async (
  trx: Database,
  postings: readonly Posting[],
  locked: Locked,
): Promise<Plan> => {
  const write = async (planned: Plan): Promise<Plan> => {
    const insert = `INSERT INTO ledger (${columns.join(', ')}) VALUES ?`;
    if (planned.rows.length > 0) await trx.raw(insert, [planned.rows as unknown as string]);
    return planned;
  };
  try {
    return await write(plan(postings, locked, new Set()));
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
    return write(plan(postings, locked, await findKnown(trx, postings)));
  }
};

export const createPostingStore = (db: Database) => ({
  /**
   * Writes postings of any accounts in one commit. Each account is locked meanwhile, so its sequence has no gap; the
   * unique key of references makes each posting one. However many accounts: the same few statements.
   */
  post: (postings: readonly Posting[], now: number): Promise<PostResult> =>
    withLockRetry(() =>
      db.transaction(async (trx) => {
        const locked = await lockAccounts(trx, postings);
        const { outcomes, balances, changed } = await insertRows(trx, postings, locked);
        await writeBalances(trx, changed, now);
        const trialsEnded = [...changed].flatMap(([id, { trialEnds }]) => (trialEnds ? [id] : []));
        await endTrials(trx, trialsEnded);
        const told = [...changed].flatMap(([id, change]) => newsOf(id, change, now));
        await insertNews(trx, told);
        await advanceEpochs(trx, trialsEnded);
        return { outcomes, balances, trialsEnded, told };
      }),
    ),
});
