// messages: one row per message, its facts and the state that follows from them; and the second line of idempotency.
import type { Knex } from 'knex';

export const up = async (knex: Knex): Promise<void> => {
  // Times are milliseconds since the epoch: exact, and free of session time zones.
  await knex.raw(`
    CREATE TABLE messages (
      id BINARY(16) NOT NULL,
      account_id BINARY(16) NOT NULL,
      mode ENUM('live', 'test') NOT NULL,
      origin ENUM('send', 'deliver') NOT NULL,
      phone VARCHAR(16) CHARACTER SET ascii NOT NULL,
      country CHAR(2) CHARACTER SET ascii NOT NULL,
      request_id VARCHAR(64) CHARACTER SET ascii NOT NULL,
      plan VARCHAR(20) CHARACTER SET ascii NOT NULL,
      price_micros BIGINT UNSIGNED NOT NULL,
      status ENUM('sent', 'verified', 'failed', 'expired') NOT NULL,
      channel ENUM('whatsapp', 'telegram') NULL,
      accepted_at BIGINT UNSIGNED NULL,
      expires_at BIGINT UNSIGNED NULL,
      delivered_at BIGINT UNSIGNED NULL,
      read_at BIGINT UNSIGNED NULL,
      verified_at BIGINT UNSIGNED NULL,
      failed_at BIGINT UNSIGNED NULL,
      failure_reason VARCHAR(32) CHARACTER SET ascii NULL,
      expired_at BIGINT UNSIGNED NULL,
      due_at BIGINT UNSIGNED NULL,
      PRIMARY KEY (id),
      KEY messages_by_account (account_id, id),
      KEY messages_due (due_at)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`);
  await knex.raw(`
    CREATE TABLE idempotency_keys (
      account_id BINARY(16) NOT NULL,
      mode ENUM('live', 'test') NOT NULL,
      key_hash BINARY(32) NOT NULL,
      message_id BINARY(16) NOT NULL,
      expires_at BIGINT UNSIGNED NOT NULL,
      PRIMARY KEY (account_id, mode, key_hash),
      KEY idempotency_keys_expiry (expires_at)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`);
};

export const down = async (knex: Knex): Promise<void> => {
  await knex.schema.dropTable('idempotency_keys');
  await knex.schema.dropTable('messages');
};
