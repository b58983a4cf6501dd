// account_news keeps events of messages as well: those that the broker did not take when they happened.
import type { Knex } from 'knex';

export const up = async (knex: Knex): Promise<void> => {
  // The message as the event carries it; null for events about the account itself.
  await knex.raw('ALTER TABLE account_news ADD COLUMN message TEXT NULL');
};

export const down = async (knex: Knex): Promise<void> => {
  // Without its message such an event says nothing.
  await knex('account_news').whereNotNull('message').delete();
  await knex.raw('ALTER TABLE account_news DROP COLUMN message');
};
