// accounts and their API keys.
import type { Knex } from 'knex';

export const up = async (knex: Knex): Promise<void> => {
  await knex.raw(`
    CREATE TABLE accounts (
      id BINARY(16) NOT NULL,
      email VARCHAR(254) NOT NULL,
      email_key VARCHAR(254) NOT NULL,
      password_hash VARCHAR(255) CHARACTER SET ascii NOT NULL,
      name VARCHAR(100) NOT NULL,
      phone VARCHAR(16) CHARACTER SET ascii NOT NULL,
      company VARCHAR(120) NULL,
      locale VARCHAR(8) CHARACTER SET ascii NOT NULL,
      status ENUM('active', 'suspended', 'closed') NOT NULL,
      billing_plan VARCHAR(20) CHARACTER SET ascii NOT NULL,
      tier VARCHAR(16) CHARACTER SET ascii NOT NULL,
      tier_per_minute INT UNSIGNED NULL,
      tier_expires_at BIGINT UNSIGNED NULL,
      created_at BIGINT UNSIGNED NOT NULL,
      PRIMARY KEY (id),
      UNIQUE KEY accounts_email (email_key)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`);
  await knex.raw(`
    CREATE TABLE api_keys (
      id BINARY(16) NOT NULL,
      account_id BINARY(16) NOT NULL,
      name VARCHAR(40) NOT NULL,
      mode ENUM('live', 'test') NOT NULL,
      secret_hash BINARY(32) NOT NULL,
      prefix VARCHAR(16) CHARACTER SET ascii NOT NULL,
      last4 CHAR(4) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
      created_at BIGINT UNSIGNED NOT NULL,
      expires_at BIGINT UNSIGNED NULL,
      revoked_at BIGINT UNSIGNED NULL,
      PRIMARY KEY (id),
      UNIQUE KEY api_keys_secret (secret_hash),
      KEY api_keys_by_account (account_id, id)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`);
};

export const down = async (knex: Knex): Promise<void> => {
  await knex.schema.dropTable('api_keys');
  await knex.schema.dropTable('accounts');
};
