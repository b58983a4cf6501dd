// whatsapp_connections: when the provider last said something of the business account, since its news come in any order.
import type { Knex } from 'knex';

export const up = async (knex: Knex): Promise<void> => {
  await knex.raw(
    'ALTER TABLE whatsapp_connections ADD COLUMN account_news_at BIGINT UNSIGNED NULL',
  );
};

export const down = async (knex: Knex): Promise<void> => {
  await knex.raw('ALTER TABLE whatsapp_connections DROP COLUMN account_news_at');
};
