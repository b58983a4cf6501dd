// Marks in MySQL: which hours of which accounts are to be counted again, and since when (the slot).
import type { Transaction } from '../infra/mysql.ts';
import { idBytes, idText } from '../kernel/ids.ts';

type Row = Record<string, unknown>;

export type Mark = { slot: number; accountId: string; hour: number };

const toMark = (row: Row): Mark => ({
  slot: Number(row.slot),
  accountId: idText(row.account_id as Buffer),
  hour: Number(row.hour),
});

const nameOf = ({ accountId, hour }: Mark): string => `${accountId}:${hour}`;

/** An hour that was marked for so long is counted more than once, in turns. */
const mostAtOnce = 10_000;

/**
 * The oldest `limit` marks whose slot is over, and the later ones of the same hours and accounts: counting an hour
 * once is enough for all of them, and where more is marked than is counted in a slot, the backlog ends at one mark per
 * active hour.
 */
export const dueMarks = async (
  trx: Transaction,
  { throughSlot, limit }: { throughSlot: number; limit: number },
): Promise<Mark[]> => {
  const due = () => trx<Row>('rollup_marks').where('slot', '<=', throughSlot);
  const rows: Row[] = await due().orderBy(['slot', 'account_id', 'hour']).limit(limit);
  const oldest = rows.map(toMark);
  // Fewer than asked for: those are all.
  if (oldest.length < limit) return oldest;
  const names = new Set(oldest.map(nameOf));
  const accounts = [...new Set(oldest.map(({ accountId }) => accountId))];
  const others: Row[] = await due().whereIn('account_id', accounts.map(idBytes)).limit(mostAtOnce);
  const known = new Set(oldest.map((mark) => `${nameOf(mark)}:${mark.slot}`));
  const later = others
    .map(toMark)
    .filter((mark) => names.has(nameOf(mark)) && !known.has(`${nameOf(mark)}:${mark.slot}`));
  return [...oldest, ...later];
};

const marksPerDelete = 500;

/** Takes away these marks and no others: one that came since may tell of something newer. */
export const removeMarks = async (trx: Transaction, marks: readonly Mark[]): Promise<void> => {
  for (let from = 0; from < marks.length; from += marksPerDelete) {
    const some = marks.slice(from, from + marksPerDelete);
    const any = some.map(() => '(slot = ? AND account_id = ? AND hour = ?)').join(' OR ');
    const bindings = some.flatMap(({ slot, accountId, hour }) => [slot, idBytes(accountId), hour]);
    await trx.raw(`DELETE FROM rollup_marks WHERE ${any}`, bindings);
  }
};
