// Free verifications are used at the success: each row of the ledger says how many were left for it.
import type { Knex } from 'knex';

export const up = async (knex: Knex): Promise<void> => {
  // Null: no free verification could have been used for it.
  await knex.raw('ALTER TABLE ledger ADD COLUMN trial_left INT UNSIGNED NULL');
  // A verification by TOTP is logged at its price from now on; whether it was free is in the ledger.
};

export const down = async (knex: Knex): Promise<void> => {
  await knex.raw('ALTER TABLE ledger DROP COLUMN trial_left');
};
