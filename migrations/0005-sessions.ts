// Sessions with their tokens, and what accounts and keys have gained: settings, secrets of their own, first keys.
import type { Knex } from 'knex';

export const up = async (knex: Knex): Promise<void> => {
  await knex.raw(`
    ALTER TABLE accounts
      ADD COLUMN webhook_url VARCHAR(2048) NULL,
      ADD COLUMN spend_cap_hourly_micros BIGINT UNSIGNED NULL,
      ADD COLUMN template_language VARCHAR(5) CHARACTER SET ascii NULL,
      ADD COLUMN webhook_secret TEXT CHARACTER SET ascii NULL,
      ADD COLUMN webhook_secret_before TEXT CHARACTER SET ascii NULL,
      ADD COLUMN webhook_secret_before_until BIGINT UNSIGNED NULL,
      ADD COLUMN signup_keys TEXT CHARACTER SET ascii NULL,
      ADD COLUMN mfa_enabled_at BIGINT UNSIGNED NULL,
      ADD COLUMN suspended_at BIGINT UNSIGNED NULL,
      ADD COLUMN suspended_reason VARCHAR(200) NULL`);
  await knex.raw(`
    ALTER TABLE api_keys
      ADD COLUMN family_id BINARY(16) NULL,
      ADD COLUMN last_used_at BIGINT UNSIGNED NULL`);
  await knex.raw(`
    CREATE TABLE sessions (
      id BINARY(16) NOT NULL,
      account_id BINARY(16) NOT NULL,
      created_at BIGINT UNSIGNED NOT NULL,
      last_used_at BIGINT UNSIGNED NOT NULL,
      ip VARCHAR(45) CHARACTER SET ascii NOT NULL,
      user_agent VARCHAR(200) NOT NULL,
      mfa BOOLEAN NOT NULL,
      proven_at BIGINT UNSIGNED NOT NULL,
      generation INT UNSIGNED NOT NULL,
      ends_at BIGINT UNSIGNED NOT NULL,
      revoked_at BIGINT UNSIGNED NULL,
      revoked_reason VARCHAR(32) CHARACTER SET ascii NULL,
      PRIMARY KEY (id),
      KEY sessions_by_account (account_id, id)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`);
  await knex.raw(`
    CREATE TABLE session_tokens (
      hash BINARY(32) NOT NULL,
      session_id BINARY(16) NOT NULL,
      kind ENUM('access', 'refresh') NOT NULL,
      generation INT UNSIGNED NOT NULL,
      expires_at BIGINT UNSIGNED NOT NULL,
      used_at BIGINT UNSIGNED NULL,
      uses INT UNSIGNED NOT NULL DEFAULT 0,
      PRIMARY KEY (hash),
      KEY session_tokens_by_session (session_id, expires_at)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`);
};

export const down = async (knex: Knex): Promise<void> => {
  await knex.schema.dropTable('session_tokens');
  await knex.schema.dropTable('sessions');
  await knex.schema.alterTable('api_keys', (table) => {
    table.dropColumns('family_id', 'last_used_at');
  });
  await knex.schema.alterTable('accounts', (table) => {
    table.dropColumns(
      ...['webhook_url', 'spend_cap_hourly_micros', 'template_language', 'webhook_secret'],
      ...['webhook_secret_before', 'webhook_secret_before_until', 'signup_keys'],
      ...['mfa_enabled_at', 'suspended_at', 'suspended_reason'],
    );
  });
};
