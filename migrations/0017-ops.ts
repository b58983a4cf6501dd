// ops_audit: everything operators did, and the orders over many dead letters that take a while.
import type { Knex } from 'knex';

export const up = async (knex: Knex): Promise<void> => {
  await knex.raw(`
    CREATE TABLE ops_audit (
      id BINARY(16) NOT NULL,
      actor VARCHAR(60) NOT NULL,
      action VARCHAR(40) CHARACTER SET ascii NOT NULL,
      subject VARCHAR(120) NOT NULL,
      detail TEXT NOT NULL,
      affected INT UNSIGNED NULL,
      status ENUM('running', 'done', 'stopped', 'failed', 'interrupted') NOT NULL,
      error VARCHAR(300) NULL,
      request_id VARCHAR(64) CHARACTER SET ascii NOT NULL,
      updated_at BIGINT UNSIGNED NOT NULL,
      PRIMARY KEY (id),
      KEY ops_audit_by_subject (subject, id),
      KEY ops_audit_by_status (status, updated_at)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`);
};

export const down = async (knex: Knex): Promise<void> => {
  await knex.schema.dropTable('ops_audit');
};
