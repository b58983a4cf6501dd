// messages: whether the account's own number was to send it, which uses up nothing of the shared number's allowance.
import type { Knex } from 'knex';

export const up = async (knex: Knex): Promise<void> => {
  await knex.raw('ALTER TABLE messages ADD COLUMN own BOOLEAN NOT NULL DEFAULT FALSE');
};

export const down = async (knex: Knex): Promise<void> => {
  await knex.raw('ALTER TABLE messages DROP COLUMN own');
};
