// payment_reversals: payments that the provider took back or returned, found by its name of the transfer behind them.
import type { Knex } from 'knex';

export const up = async (knex: Knex): Promise<void> => {
  // The provider's names may have 255 characters; none of the two columns takes a table copy.
  await knex.raw(`
    ALTER TABLE ledger
      MODIFY reference VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL`);
  await knex.raw(`
    ALTER TABLE payments
      MODIFY name VARCHAR(240) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
      ADD COLUMN intent VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NULL,
      ADD KEY payments_by_intent (intent)`);
  await knex.raw(`
    CREATE TABLE payment_reversals (
      name VARCHAR(240) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
      intent VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
      amount_micros BIGINT NOT NULL,
      note VARCHAR(200) NOT NULL,
      received_at BIGINT UNSIGNED NOT NULL,
      PRIMARY KEY (name),
      KEY payment_reversals_by_intent (intent)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`);
};

export const down = async (knex: Knex): Promise<void> => {
  await knex.schema.dropTable('payment_reversals');
  await knex.schema.alterTable('payments', (table) => {
    table.dropIndex('intent', 'payments_by_intent');
    table.dropColumn('intent');
  });
};
