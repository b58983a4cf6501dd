// The account's security log, which key made a key, whether keys may manage the account, and events that a former
// webhook address is still to hear of.
import type { Knex } from 'knex';

export const up = async (knex: Knex): Promise<void> => {
  await knex.raw(`
    CREATE TABLE security_log (
      id BINARY(16) NOT NULL,
      account_id BINARY(16) NOT NULL,
      action VARCHAR(32) CHARACTER SET ascii NOT NULL,
      made_by VARCHAR(16) CHARACTER SET ascii NOT NULL,
      credential_id BINARY(16) NULL,
      ip VARCHAR(45) CHARACTER SET ascii NULL,
      subject_id BINARY(16) NULL,
      changes TEXT NOT NULL,
      request_id VARCHAR(64) CHARACTER SET ascii NULL,
      PRIMARY KEY (id),
      KEY security_log_by_account (account_id, id),
      KEY security_log_by_credential (account_id, credential_id, id)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`);
  // Null: a session or signing up made it, or it is older than this column.
  await knex.raw('ALTER TABLE api_keys ADD COLUMN made_by_key BINARY(16) NULL');
  await knex.raw(
    'ALTER TABLE accounts ADD COLUMN keys_manage_account BOOLEAN NOT NULL DEFAULT TRUE',
  );
  // Address and sealed secrets as they were before the change that the event tells of.
  await knex.raw(`
    CREATE TABLE former_address_events (
      id BINARY(16) NOT NULL,
      account_id BINARY(16) NOT NULL,
      url VARCHAR(2048) NOT NULL,
      secrets TEXT CHARACTER SET ascii NOT NULL,
      event TEXT NOT NULL,
      attempts INT UNSIGNED NOT NULL DEFAULT 0,
      next_attempt_at BIGINT UNSIGNED NOT NULL,
      PRIMARY KEY (id),
      KEY former_address_events_due (next_attempt_at)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`);
};

export const down = async (knex: Knex): Promise<void> => {
  await knex.schema.dropTable('former_address_events');
  await knex.raw('ALTER TABLE accounts DROP COLUMN keys_manage_account');
  await knex.raw('ALTER TABLE api_keys DROP COLUMN made_by_key');
  await knex.schema.dropTable('security_log');
};
