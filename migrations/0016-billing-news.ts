// What accounts are still to be told about their money, and the payments that were received.
import type { Knex } from 'knex';

export const up = async (knex: Knex): Promise<void> => {
  // Written with the change it tells of, deleted when the broker has it.
  await knex.raw(`
    CREATE TABLE billing_news (
      id BINARY(16) NOT NULL,
      account_id BINARY(16) NOT NULL,
      type VARCHAR(40) CHARACTER SET ascii NOT NULL,
      subject VARCHAR(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
      data TEXT NOT NULL,
      created_at BIGINT UNSIGNED NOT NULL,
      PRIMARY KEY (id),
      KEY billing_news_by_age (created_at)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`);
  // The provider's own name of a payment makes it one, however often it is told.
  await knex.raw(`
    CREATE TABLE payments (
      name VARCHAR(80) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
      account VARCHAR(200) NOT NULL,
      account_id BINARY(16) NULL,
      amount_micros BIGINT UNSIGNED NOT NULL,
      received_at BIGINT UNSIGNED NOT NULL,
      PRIMARY KEY (name),
      KEY payments_by_account (account_id)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`);
};

export const down = async (knex: Knex): Promise<void> => {
  await knex.schema.dropTable('payments');
  await knex.schema.dropTable('billing_news');
};
