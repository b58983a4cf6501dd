// accounts: what an account was granted on the shared number, of its own and not by the settings of the day.
import type { Knex } from 'knex';

export const up = async (knex: Knex): Promise<void> => {
  await knex.raw(`
    ALTER TABLE accounts
      ADD COLUMN shared_unverified INT UNSIGNED NOT NULL DEFAULT 10,
      ADD COLUMN shared_per_verified INT UNSIGNED NOT NULL DEFAULT 5,
      ADD COLUMN shared_from BIGINT UNSIGNED NOT NULL DEFAULT 0`);
  // Accounts that were there before begin anew today, with what their free verifications up to now have earned: an
  // allowance that was counted otherwise leaves nobody without one. The platform's own (created at 0) need none.
  await knex.raw(
    `UPDATE accounts SET shared_unverified = shared_unverified + shared_per_verified * trial_used, shared_from = ?
     WHERE created_at > 0`,
    [Date.now()],
  );
};

export const down = async (knex: Knex): Promise<void> => {
  await knex.raw(`
    ALTER TABLE accounts
      DROP COLUMN shared_unverified, DROP COLUMN shared_per_verified, DROP COLUMN shared_from`);
};
