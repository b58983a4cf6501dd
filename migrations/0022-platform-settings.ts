// platform_settings: what operators have set over the settings of the environment, for all processes at once.
import type { Knex } from 'knex';

export const up = async (knex: Knex): Promise<void> => {
  await knex.raw(`
    CREATE TABLE platform_settings (
      name VARCHAR(40) CHARACTER SET ascii NOT NULL,
      value VARCHAR(2000) NOT NULL,
      changed_at BIGINT UNSIGNED NOT NULL,
      PRIMARY KEY (name)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`);
};

export const down = async (knex: Knex): Promise<void> => {
  await knex.schema.dropTable('platform_settings');
};
