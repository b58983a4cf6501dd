// What customers read: messages by state, and requests for more capacity.
import type { Knex } from 'knex';

export const up = async (knex: Knex): Promise<void> => {
  await knex.raw('ALTER TABLE messages ADD KEY messages_by_status (account_id, status, id)');
  await knex.raw(`
    CREATE TABLE capacity_requests (
      id BINARY(16) NOT NULL,
      account_id BINARY(16) NOT NULL,
      sustained INT UNSIGNED NOT NULL,
      burst INT UNSIGNED NOT NULL,
      expected_sustained INT UNSIGNED NOT NULL,
      expected_peak INT UNSIGNED NOT NULL,
      justification TEXT NOT NULL,
      facts TEXT NULL,
      status ENUM('pending', 'approved', 'rejected', 'cancelled') NOT NULL,
      updated_at BIGINT UNSIGNED NOT NULL,
      cancelled_at BIGINT UNSIGNED NULL,
      reviewed_at BIGINT UNSIGNED NULL,
      review_note VARCHAR(500) NULL,
      PRIMARY KEY (id),
      KEY capacity_requests_by_account (account_id, id)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`);
};

export const down = async (knex: Knex): Promise<void> => {
  await knex.schema.dropTable('capacity_requests');
  await knex.schema.alterTable('messages', (table) => table.dropIndex([], 'messages_by_status'));
};
