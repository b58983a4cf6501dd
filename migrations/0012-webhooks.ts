// Webhooks: what is to be delivered, every attempt at it, and endpoints that are given up.
import type { Knex } from 'knex';

export const up = async (knex: Knex): Promise<void> => {
  await knex.raw(`
    ALTER TABLE accounts
      ADD COLUMN webhook_failing_since BIGINT UNSIGNED NULL,
      ADD COLUMN webhook_disabled_at BIGINT UNSIGNED NULL,
      ADD COLUMN webhook_disabled_reason VARCHAR(20) CHARACTER SET ascii NULL`);
  await knex.raw(`
    CREATE TABLE webhook_deliveries (
      id BINARY(16) NOT NULL,
      account_id BINARY(16) NOT NULL,
      event_id BINARY(16) NOT NULL,
      type VARCHAR(40) CHARACTER SET ascii NOT NULL,
      body TEXT NOT NULL,
      status ENUM('pending', 'delivered', 'failed', 'held') NOT NULL,
      attempts INT UNSIGNED NOT NULL DEFAULT 0,
      created_at BIGINT UNSIGNED NOT NULL,
      next_attempt_at BIGINT UNSIGNED NULL,
      PRIMARY KEY (id),
      UNIQUE KEY webhook_deliveries_event (account_id, event_id),
      KEY webhook_deliveries_due (next_attempt_at),
      KEY webhook_deliveries_by_account (account_id, id),
      KEY webhook_deliveries_by_status (account_id, status, id)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`);
  await knex.raw(`
    CREATE TABLE webhook_attempts (
      delivery_id BINARY(16) NOT NULL,
      number INT UNSIGNED NOT NULL,
      at BIGINT UNSIGNED NOT NULL,
      status INT UNSIGNED NULL,
      reason VARCHAR(24) CHARACTER SET ascii NULL,
      duration_ms INT UNSIGNED NOT NULL,
      PRIMARY KEY (delivery_id, number)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`);
};

export const down = async (knex: Knex): Promise<void> => {
  await knex.schema.dropTable('webhook_attempts');
  await knex.schema.dropTable('webhook_deliveries');
  await knex.schema.alterTable('accounts', (table) => {
    table.dropColumns('webhook_failing_since', 'webhook_disabled_at', 'webhook_disabled_reason');
  });
};
