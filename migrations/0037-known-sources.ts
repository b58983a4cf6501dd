// known_sources: where each account was logged in from before, as keyed hashes; strangers cannot lock these out.
import type { Knex } from 'knex';

export const up = async (knex: Knex): Promise<void> => {
  await knex.raw(`
    CREATE TABLE known_sources (
      account_id BINARY(16) NOT NULL,
      source BINARY(32) NOT NULL,
      logged_in BOOLEAN NOT NULL,
      last_used_at BIGINT UNSIGNED NOT NULL,
      PRIMARY KEY (account_id, source),
      KEY known_sources_by_age (last_used_at)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`);
};

export const down = async (knex: Knex): Promise<void> => {
  await knex.schema.dropTable('known_sources');
};
