// Webhooks: when an endpoint that was given up was last asked whether it answers again.
import type { Knex } from 'knex';

export const up = async (knex: Knex): Promise<void> => {
  await knex.raw(`
    ALTER TABLE accounts
      ADD COLUMN webhook_probed_at BIGINT UNSIGNED NULL,
      ADD KEY accounts_by_webhook_disabled (webhook_disabled_at)`);
};

export const down = async (knex: Knex): Promise<void> => {
  await knex.schema.alterTable('accounts', (table) => {
    table.dropIndex([], 'accounts_by_webhook_disabled');
    table.dropColumn('webhook_probed_at');
  });
};
