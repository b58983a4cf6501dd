// Finding a message by what people know of it: the recipient's number, or the id of the request that sent it.
import type { Knex } from 'knex';

export const up = async (knex: Knex): Promise<void> => {
  await knex.raw(`
    ALTER TABLE messages
      ADD KEY messages_by_phone (phone, id),
      ADD KEY messages_by_request (request_id)`);
};

export const down = async (knex: Knex): Promise<void> => {
  await knex.raw('ALTER TABLE messages DROP KEY messages_by_phone, DROP KEY messages_by_request');
};
