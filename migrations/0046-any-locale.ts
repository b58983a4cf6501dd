// The language of an account is kept as it was given: up to eight characters of any script.
import type { Knex } from 'knex';

export const up = async (knex: Knex): Promise<void> => {
  await knex.raw('ALTER TABLE accounts MODIFY locale VARCHAR(8) CHARACTER SET utf8mb4 NOT NULL');
};

export const down = async (knex: Knex): Promise<void> => {
  await knex('accounts').whereNotIn('locale', ['en', 'ar']).update({ locale: 'en' });
  await knex.raw('ALTER TABLE accounts MODIFY locale VARCHAR(8) CHARACTER SET ascii NOT NULL');
};
