// Money: the append-only ledger, what an account has and owes, prices, and the switches of the platform.
import type { Knex } from 'knex';

export const up = async (knex: Knex): Promise<void> => {
  // Balance and sequence move only together with a row of the ledger, in one transaction.
  await knex.raw(`
    ALTER TABLE accounts
      ADD COLUMN balance_micros BIGINT NOT NULL DEFAULT 0,
      ADD COLUMN ledger_seq BIGINT UNSIGNED NOT NULL DEFAULT 0,
      ADD COLUMN spent_hour BIGINT UNSIGNED NOT NULL DEFAULT 0,
      ADD COLUMN spent_micros BIGINT NOT NULL DEFAULT 0,
      ADD COLUMN deposited_at BIGINT UNSIGNED NULL,
      ADD COLUMN trial_granted INT UNSIGNED NOT NULL DEFAULT 0,
      ADD COLUMN trial_used INT UNSIGNED NOT NULL DEFAULT 0,
      ADD COLUMN shared_paused BOOLEAN NOT NULL DEFAULT FALSE,
      ADD COLUMN floor_low_days INT UNSIGNED NOT NULL DEFAULT 0,
      ADD COLUMN floor_since BIGINT UNSIGNED NULL`);
  await knex.raw(`
    CREATE TABLE ledger (
      account_id BINARY(16) NOT NULL,
      seq BIGINT UNSIGNED NOT NULL,
      id BINARY(16) NOT NULL,
      reference VARCHAR(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
      kind ENUM('deposit', 'grant', 'charge', 'totp', 'refund', 'adjust') NOT NULL,
      counter ENUM('cash', 'promotion', 'revenue', 'adjustment') NOT NULL,
      amount_micros BIGINT NOT NULL,
      balance_after BIGINT NOT NULL,
      plan VARCHAR(20) CHARACTER SET ascii NULL,
      price_micros BIGINT UNSIGNED NULL,
      message_id BINARY(16) NULL,
      note VARCHAR(200) NULL,
      PRIMARY KEY (account_id, seq),
      UNIQUE KEY ledger_reference (account_id, reference),
      KEY ledger_by_id (account_id, id)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`);
  await knex.raw(`
    CREATE TABLE prices (
      country CHAR(2) CHARACTER SET ascii NOT NULL,
      price_micros BIGINT UNSIGNED NULL,
      cost_micros BIGINT UNSIGNED NOT NULL DEFAULT 0,
      PRIMARY KEY (country)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`);
  await knex.raw(`
    CREATE TABLE account_prices (
      account_id BINARY(16) NOT NULL,
      country CHAR(2) CHARACTER SET ascii NOT NULL,
      price_micros BIGINT UNSIGNED NOT NULL,
      PRIMARY KEY (account_id, country)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`);
  await knex.raw(`
    CREATE TABLE floor_days (
      account_id BINARY(16) NOT NULL,
      date CHAR(10) CHARACTER SET ascii NOT NULL,
      settled INT UNSIGNED NOT NULL,
      verified INT UNSIGNED NOT NULL,
      low_days INT UNSIGNED NOT NULL,
      plan VARCHAR(20) CHARACTER SET ascii NOT NULL,
      switched BOOLEAN NOT NULL,
      PRIMARY KEY (account_id, date)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`);
  await knex.raw(`
    CREATE TABLE switches (
      name VARCHAR(40) CHARACTER SET ascii NOT NULL,
      paused BOOLEAN NOT NULL,
      changed_at BIGINT UNSIGNED NOT NULL,
      PRIMARY KEY (name)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`);
};

export const down = async (knex: Knex): Promise<void> => {
  for (const table of ['floor_days', 'switches', 'account_prices', 'prices', 'ledger']) {
    await knex.schema.dropTable(table);
  }
  await knex.schema.alterTable('accounts', (table) => {
    table.dropColumns(
      ...['balance_micros', 'ledger_seq', 'spent_hour', 'spent_micros', 'deposited_at'],
      ...['trial_granted', 'trial_used', 'shared_paused', 'floor_low_days', 'floor_since'],
    );
  });
};
