// Writing the ledger in MySQL: rows are only ever added, gapless per account, each reference once, the balance with them.
import { advanceEpochs } from '../accounts/epoch-store.ts';
import { type Database, isDuplicateKey, withLockRetry } from '../infra/mysql.ts';
import type { EventWire } from '../jobs.ts';
import { idBytes, idText, newId } from '../kernel/ids.ts';
import { insertNews } from '../messages/news-store.ts';
import type { Plan } from '../messages/rules.ts';
import { newsOf } from './news.ts';
import {
  applyPosting,
  type Balance,
  type Change,
  counterOf,
  decide,
  endsTrial,
  type Posting,
} from './rules.ts';

type Row = Record<string, unknown>;

/** The columns of an account that `toBalance` reads. */
export const balanceColumns = [
  ...['id', 'balance_micros', 'ledger_seq', 'spent_hour', 'spent_micros', 'deposited_at'],
  ...['trial_granted', 'trial_used', 'shared_unverified', 'shared_per_verified'],
];

export const toBalance = (row: Row): Balance => ({
  micros: Number(row.balance_micros),
  seq: Number(row.ledger_seq),
  spentHour: Number(row.spent_hour),
  spentMicros: Number(row.spent_micros),
  deposited: row.deposited_at !== null,
  trialGranted: Number(row.trial_granted),
  trialUsed: Number(row.trial_used),
  shared: {
    unverified: Number(row.shared_unverified),
    perVerified: Number(row.shared_per_verified),
  },
});

/** What became of a posting: written now, written before, or for an account that is not there. */
export type Posted = 'posted' | 'known' | 'no_account';

/** The row that stands behind a posting, written now or before; nothing for an account that is not there. */
export type Written = { plan: Plan | null; amountMicros: number };

export type PostResult = {
  outcomes: Posted[];
  /** What each posting came to. */
  written: Written[];
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

const nothing: Written = { plan: null, amountMicros: 0 };

// Written out: at thousands a second the query builder costs more than the database.
const findKnown = async (
  trx: Database,
  postings: readonly Posting[],
): Promise<Map<string, Written>> => {
  const pairs = postings.flatMap(({ accountId, reference }) => [idBytes(accountId), reference]);
  const any = postings.map(() => '(account_id = ? AND reference = ?)').join(' OR ');
  const sql = `SELECT account_id, reference, plan, amount_micros FROM ledger WHERE ${any}`;
  const [rows] = (await trx.raw(sql, pairs)) as [Row[]];
  return new Map(
    rows.map((row) => [
      nameOf(idText(row.account_id as Buffer), String(row.reference)),
      { plan: row.plan as Plan | null, amountMicros: Number(row.amount_micros) },
    ]),
  );
};

const columns = [
  ...['account_id', 'seq', 'id', 'reference', 'kind', 'counter', 'amount_micros'],
  ...['balance_after', 'plan', 'price_micros', 'message_id', 'note', 'trial_left'],
];

/** The values of a row, in the order of `columns`; `trialLeft`: the free verifications it could have used. */
const toRow = (posting: Posting, balance: Balance, trialLeft: number | null): unknown[] => [
  ...[idBytes(posting.accountId), balance.seq, idBytes(newId()), posting.reference],
  ...[posting.kind, counterOf[posting.kind], posting.amountMicros, balance.micros],
  ...[posting.plan, posting.priceMicros],
  ...[posting.messageId === null ? null : idBytes(posting.messageId), posting.note],
  trialLeft,
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

type Planned = Pick<PostResult, 'outcomes' | 'written' | 'balances'> & {
  /** The accounts that are written to. */
  changed: Map<string, Change>;
  rows: unknown[][];
  /** Messages that were charged on another plan than they were sent on. */
  replanned: { id: string; plan: Plan }[];
};

const emptyPlan = (balances: ReadonlyMap<string, Balance>): Planned => ({
  outcomes: [],
  written: [],
  balances: new Map(balances),
  changed: new Map(),
  rows: [],
  replanned: [],
});

const trialLeftOf = (balance: Balance, onTrial: boolean, posting: Posting): number | null =>
  posting.mayBeFree && onTrial ? Math.max(balance.trialGranted - balance.trialUsed, 0) : null;

/** Decides posting by posting, in order, what is written; pure but for the ids of the rows. */
const plan = (
  postings: readonly Posting[],
  { balances: locked, onTrial }: Locked,
  before: ReadonlyMap<string, Written>,
): Planned => {
  const known = new Map(before);
  const planned = emptyPlan(locked);
  const { balances, changed } = planned;
  const note = (outcome: Posted, written: Written): void => {
    planned.outcomes.push(outcome);
    planned.written.push(written);
  };
  for (const asked of postings) {
    const { accountId, reference, messageId } = asked;
    const name = nameOf(accountId, reference);
    const balance = balances.get(accountId);
    const there = known.get(name);
    if (!balance) note('no_account', nothing);
    else if (there) note('known', there);
    else {
      const posting = decide(balance, onTrial.has(accountId), asked);
      const after = applyPosting(balance, posting);
      const first = changed.get(accountId)?.before ?? balance;
      const trialEnds = onTrial.has(accountId) && endsTrial(after);
      const written = { plan: posting.plan, amountMicros: posting.amountMicros };
      known.set(name, written);
      balances.set(accountId, after);
      changed.set(accountId, { before: first, after, trialEnds });
      planned.rows.push(toRow(posting, after, trialLeftOf(balance, onTrial.has(accountId), asked)));
      if (messageId !== null && posting.plan !== null && posting.plan !== asked.plan) {
        planned.replanned.push({ id: messageId, plan: posting.plan });
      }
      note('posted', written);
    }
  }
  return planned;
};

/**
 * Writes the rows of postings that are hardly ever known already: that is learnt from the unique key, and only then
 * asked which of them are.
 */
const insertRows = async (
  trx: Database,
  postings: readonly Posting[],
  locked: Locked,
): Promise<Planned> => {
  const write = async (planned: Planned): Promise<Planned> => {
    const insert = `INSERT INTO ledger (${columns.join(', ')}) VALUES ?`;
    if (planned.rows.length > 0) await trx.raw(insert, [planned.rows as unknown as string]);
    return planned;
  };
  try {
    return await write(plan(postings, locked, new Map()));
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
    return write(plan(postings, locked, await findKnown(trx, postings)));
  }
};

/**
 * A message says on which plan it was charged: lists, analytics and the books read it there. Its row is written before
 * its posting.
 */
const writePlans = async (trx: Database, replanned: Planned['replanned']): Promise<void> => {
  for (const [name, some] of Map.groupBy(replanned, (one) => one.plan)) {
    const ids = some.map(({ id }) => idBytes(id));
    await trx('messages').whereIn('id', ids).update({ plan: name });
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
        const { outcomes, written, balances, changed, replanned } = await insertRows(
          trx,
          postings,
          locked,
        );
        await writeBalances(trx, changed, now);
        await writePlans(trx, replanned);
        const trialsEnded = [...changed].flatMap(([id, { trialEnds }]) => (trialEnds ? [id] : []));
        await endTrials(trx, trialsEnded);
        const told = [...changed].flatMap(([id, change]) => newsOf(id, change, now));
        await insertNews(trx, told);
        await advanceEpochs(trx, trialsEnded);
        return { outcomes, written, balances, trialsEnded, told };
      }),
    ),
});
