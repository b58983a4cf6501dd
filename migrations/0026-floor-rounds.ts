// floor_rounds: the UTC days that the safety floor has judged for all accounts.
import type { Knex } from 'knex';

export const up = async (knex: Knex): Promise<void> => {
  await knex.raw(`
    CREATE TABLE floor_rounds (
      date CHAR(10) CHARACTER SET ascii NOT NULL,
      judged_at BIGINT UNSIGNED NOT NULL,
      PRIMARY KEY (date)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`);
};

export const down = async (knex: Knex): Promise<void> => {
  await knex.schema.dropTable('floor_rounds');
};
