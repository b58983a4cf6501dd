// Phones enrolled for TOTP, inserted in bulk as the product keeps them.
import type { Database } from '../../lib/infra/mysql.ts';
import type { Config } from '../../lib/kernel/config.ts';
import { idBytes, newId } from '../../lib/kernel/ids.ts';
import { createSealer } from '../../lib/kernel/secrets.ts';
import { seedContext } from '../../lib/totp/enroll.ts';
import { phoneOf, totpSecret } from './recipients.ts';

const perStatement = 1_000;

/** Enrolls phones, confirmed, each for the account whose key its requests carry. */
export const createEnroll = (db: Database, config: Config, accountIds: readonly string[]) => {
  const sealer = createSealer(config.totpKeys);
  return async (first: number, count: number): Promise<void> => {
    const at = Date.now();
    const rows = Array.from({ length: count }, (_, index) => {
      const id = newId();
      return {
        account_id: idBytes(accountIds[(first + index) % accountIds.length] ?? ''),
        ...{ mode: 'live', phone: phoneOf(first + index), id: idBytes(id), state: 'confirmed' },
        ...{ seed: sealer.seal(totpSecret, seedContext(id)), created_at: at, confirmed_at: at },
      };
    });
    await db.batchInsert('totp_enrollments', rows, perStatement);
  };
};
