// Deliveries by kind: one index finds the newest of an event type in any state; those of every type are found by state.
import type { Knex } from 'knex';

export const up = async (knex: Knex): Promise<void> => {
  await knex.raw(`
    ALTER TABLE webhook_deliveries
      DROP KEY webhook_deliveries_by_account,
      ADD KEY webhook_deliveries_by_type (account_id, type, status, id)`);
};

export const down = async (knex: Knex): Promise<void> => {
  await knex.raw(`
    ALTER TABLE webhook_deliveries
      DROP KEY webhook_deliveries_by_type,
      ADD KEY webhook_deliveries_by_account (account_id, id)`);
};
