// checkouts: the pages to pay on that this service opened. Only a payment of one of them is booked by itself.
import type { Knex } from 'knex';

export const up = async (knex: Knex): Promise<void> => {
  // The provider's name is not known before the provider answers: the row is written first.
  await knex.raw(`
    CREATE TABLE checkouts (
      id BINARY(16) NOT NULL,
      account_id BINARY(16) NOT NULL,
      amount_micros BIGINT UNSIGNED NOT NULL,
      session VARCHAR(240) CHARACTER SET ascii COLLATE ascii_bin NULL,
      opened_at BIGINT UNSIGNED NOT NULL,
      PRIMARY KEY (id),
      UNIQUE KEY checkouts_by_session (session)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`);
};

export const down = async (knex: Knex): Promise<void> => {
  await knex.schema.dropTable('checkouts');
};
