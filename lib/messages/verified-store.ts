// Verifications in MySQL: of a message that is known to be taken, nothing changes but that it is verified.
import { type Database, withLockRetry } from '../infra/mysql.ts';
import { isOutage } from '../infra/outages.ts';
import { createGrouper } from '../kernel/grouper.ts';
import { idBytes } from '../kernel/ids.ts';
import type { Facts, Message } from './rules.ts';

export type Verification = { message: Message; facts: Facts };

/**
 * Marks messages that a row says were taken and not yet verified; resolves with whether these were all. Naming a time
 * or two for each row costs the database two thirds of merging all that is known of it.
 */
const mark = async (db: Database, all: readonly Verification[]): Promise<boolean> => {
  const ids = all.map(({ message }) => idBytes(message.id));
  const verified = all.flatMap(({ facts }, index) => [ids[index], facts.verifiedAt]);
  const delivered = all.flatMap(({ facts: { deliveredAt: at } }, index) =>
    at === null ? [] : [[ids[index], at, at]],
  );
  // A verification may overtake the receipt of its message.
  const deliveries = delivered.map(() => 'WHEN ? THEN LEAST(COALESCE(delivered_at, ?), ?)');
  const sql = `UPDATE messages
    SET verified_at = CASE id ${all.map(() => 'WHEN ? THEN ?').join(' ')} END, status = 'verified', due_at = NULL
    ${deliveries.length > 0 ? `, delivered_at = CASE id ${deliveries.join(' ')} ELSE delivered_at END` : ''}
    WHERE id IN (?) AND accepted_at IS NOT NULL AND verified_at IS NULL`;
  const values = [...verified, ...delivered.flat(), ids];
  const [{ affectedRows }] = await withLockRetry(() => db.raw(sql, values as never));
  return affectedRows === all.length;
};

/**
 * Records verifications in groups, resolving after the commit. `merge` takes the rest: messages without a row or
 * without news of their acceptance, those that come again, and Telegram's, which may be the only word of the fallback.
 */
export const createVerifications = (
  db: Database,
  merge: (verification: Verification) => Promise<void>,
) => {
  const grouped = createGrouper<Verification, undefined>({
    ...{ maxSize: 200, maxWaitMs: 1 },
    blamesOne: (error) => !isOutage(error),
    run: async (all) => {
      // Some are marked now; merged, they stay what they are.
      if (!(await mark(db, all))) await Promise.all(all.map(merge));
      return [];
    },
  });
  return {
    verify: async (verification: Verification): Promise<void> => {
      if (verification.facts.channel === 'telegram') await merge(verification);
      else await grouped.add(verification);
    },
    drain: grouped.drain,
  };
};
