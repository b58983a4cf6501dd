// TOTP: one enrollment per account, mode and phone, the steps that were used, and a log of every verification.
import type { Knex } from 'knex';

export const up = async (knex: Knex): Promise<void> => {
  await knex.raw(`
    CREATE TABLE totp_enrollments (
      account_id BINARY(16) NOT NULL,
      mode ENUM('live', 'test') NOT NULL,
      phone VARCHAR(16) CHARACTER SET ascii NOT NULL,
      id BINARY(16) NOT NULL,
      state ENUM('unconfirmed', 'confirmed', 'disabled') NOT NULL,
      seed TEXT CHARACTER SET ascii NULL,
      created_at BIGINT UNSIGNED NOT NULL,
      confirmed_at BIGINT UNSIGNED NULL,
      PRIMARY KEY (account_id, mode, phone),
      UNIQUE KEY totp_enrollments_id (id)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`);
  // A step counts once: this key is what decides. Rows are of no use once their step has passed.
  await knex.raw(`
    CREATE TABLE totp_steps (
      enrollment_id BINARY(16) NOT NULL,
      step BIGINT UNSIGNED NOT NULL,
      attempt_id BINARY(16) NOT NULL,
      PRIMARY KEY (enrollment_id, step),
      KEY totp_steps_age (step)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`);
  await knex.raw(`
    CREATE TABLE totp_log (
      id BINARY(16) NOT NULL,
      account_id BINARY(16) NOT NULL,
      mode ENUM('live', 'test') NOT NULL,
      phone VARCHAR(16) CHARACTER SET ascii NOT NULL,
      enrollment_id BINARY(16) NOT NULL,
      step BIGINT UNSIGNED NULL,
      status ENUM('verified', 'failed') NOT NULL,
      reason VARCHAR(16) CHARACTER SET ascii NULL,
      price_micros BIGINT UNSIGNED NOT NULL,
      request_id VARCHAR(64) CHARACTER SET ascii NOT NULL,
      PRIMARY KEY (id),
      KEY totp_log_by_account (account_id, id),
      KEY totp_log_by_status (account_id, status, id)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`);
};

export const down = async (knex: Knex): Promise<void> => {
  await knex.schema.dropTable('totp_log');
  await knex.schema.dropTable('totp_steps');
  await knex.schema.dropTable('totp_enrollments');
};
