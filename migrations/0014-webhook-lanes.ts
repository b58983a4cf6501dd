// Webhooks: deliveries that wait for their endpoint's turn, replays of what was held, and what is known of an endpoint.
import type { Knex } from 'knex';

export const up = async (knex: Knex): Promise<void> => {
  await knex.raw(`
    ALTER TABLE accounts
      ADD COLUMN webhook_changed_at BIGINT UNSIGNED NULL,
      ADD COLUMN webhook_paused_until BIGINT UNSIGNED NULL,
      ADD COLUMN webhook_failures INT UNSIGNED NOT NULL DEFAULT 0,
      ADD COLUMN webhook_failing_days INT UNSIGNED NOT NULL DEFAULT 0,
      ADD COLUMN webhook_failed_day INT UNSIGNED NULL`);
  await knex.raw(`
    ALTER TABLE webhook_deliveries
      MODIFY COLUMN status ENUM('pending', 'delivered', 'failed', 'held', 'waiting') NOT NULL,
      ADD COLUMN tries INT UNSIGNED NOT NULL DEFAULT 0,
      ADD COLUMN released_at BIGINT UNSIGNED NULL,
      ADD COLUMN delivered_at BIGINT UNSIGNED NULL,
      ADD COLUMN running_until BIGINT UNSIGNED NULL,
      ADD COLUMN manual TINYINT UNSIGNED NOT NULL DEFAULT 0`);
  await knex.raw('UPDATE webhook_deliveries SET tries = attempts');
  await knex.raw(`
    CREATE TABLE webhook_replays (
      id BINARY(16) NOT NULL,
      account_id BINARY(16) NOT NULL,
      total INT UNSIGNED NOT NULL,
      released INT UNSIGNED NOT NULL DEFAULT 0,
      created_at BIGINT UNSIGNED NOT NULL,
      next_at BIGINT UNSIGNED NULL,
      finished_at BIGINT UNSIGNED NULL,
      PRIMARY KEY (id),
      KEY webhook_replays_due (next_at),
      KEY webhook_replays_by_account (account_id, id)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`);
};

export const down = async (knex: Knex): Promise<void> => {
  await knex.schema.dropTable('webhook_replays');
  await knex('webhook_deliveries').where({ status: 'waiting' }).update({ status: 'pending' });
  await knex.raw(`
    ALTER TABLE webhook_deliveries
      MODIFY COLUMN status ENUM('pending', 'delivered', 'failed', 'held') NOT NULL`);
  await knex.schema.alterTable('webhook_deliveries', (table) => {
    table.dropColumns('tries', 'released_at', 'delivered_at', 'running_until', 'manual');
  });
  await knex.schema.alterTable('accounts', (table) => {
    table.dropColumns(
      ...['webhook_changed_at', 'webhook_paused_until', 'webhook_failures'],
      ...['webhook_failing_days', 'webhook_failed_day'],
    );
  });
};
