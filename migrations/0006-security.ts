// The second factor of accounts: its seed, its recovery codes, and logins that wait for it.
import type { Knex } from 'knex';

export const up = async (knex: Knex): Promise<void> => {
  await knex.raw(`
    CREATE TABLE account_factors (
      account_id BINARY(16) NOT NULL,
      seed TEXT CHARACTER SET ascii NULL,
      pending_seed TEXT CHARACTER SET ascii NULL,
      pending_until BIGINT UNSIGNED NULL,
      last_step BIGINT UNSIGNED NOT NULL DEFAULT 0,
      recovery_salt BINARY(16) NULL,
      PRIMARY KEY (account_id)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`);
  await knex.raw(`
    CREATE TABLE recovery_codes (
      account_id BINARY(16) NOT NULL,
      hash BINARY(32) NOT NULL,
      used_at BIGINT UNSIGNED NULL,
      PRIMARY KEY (account_id, hash)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`);
  await knex.raw(`
    CREATE TABLE mfa_challenges (
      hash BINARY(32) NOT NULL,
      account_id BINARY(16) NOT NULL,
      ip VARCHAR(45) CHARACTER SET ascii NOT NULL,
      user_agent VARCHAR(200) NOT NULL,
      source CHAR(64) CHARACTER SET ascii NOT NULL,
      attempts INT UNSIGNED NOT NULL DEFAULT 0,
      expires_at BIGINT UNSIGNED NOT NULL,
      used_at BIGINT UNSIGNED NULL,
      PRIMARY KEY (hash),
      KEY mfa_challenges_expiry (expires_at)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`);
};

export const down = async (knex: Knex): Promise<void> => {
  await knex.schema.dropTable('mfa_challenges');
  await knex.schema.dropTable('recovery_codes');
  await knex.schema.dropTable('account_factors');
};
