// webhook_deliveries: the mode of their event, so that a key is shown those of its own mode.
import type { Knex } from 'knex';

export const up = async (knex: Knex): Promise<void> => {
  await knex.raw(`
    ALTER TABLE webhook_deliveries
      ADD COLUMN mode ENUM('live', 'test') NOT NULL DEFAULT 'live'`);
  // The envelope names the mode once, before the data, and no value in front of it can hold this text.
  await knex.raw(
    `UPDATE webhook_deliveries SET mode = 'test' WHERE body LIKE '%","mode":"test","data":%'`,
  );
  await knex.raw(`
    ALTER TABLE webhook_deliveries
      DROP KEY webhook_deliveries_by_type,
      ADD KEY webhook_deliveries_by_kind (account_id, mode, type, status, id)`);
};

export const down = async (knex: Knex): Promise<void> => {
  await knex.raw(`
    ALTER TABLE webhook_deliveries
      DROP KEY webhook_deliveries_by_kind,
      ADD KEY webhook_deliveries_by_type (account_id, type, status, id)`);
  await knex.raw('ALTER TABLE webhook_deliveries DROP COLUMN mode');
};
