// message_events: the history of each message, one row per event, in the order of its message.
import type { Knex } from 'knex';

export const up = async (knex: Knex): Promise<void> => {
  await knex.raw(`
    CREATE TABLE message_events (
      message_id BINARY(16) NOT NULL,
      event_id BINARY(16) NOT NULL,
      account_id BINARY(16) NOT NULL,
      type VARCHAR(40) CHARACTER SET ascii NOT NULL,
      at BIGINT UNSIGNED NOT NULL,
      request_id VARCHAR(64) CHARACTER SET ascii NOT NULL,
      data JSON NOT NULL,
      PRIMARY KEY (message_id, event_id)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`);
};

export const down = async (knex: Knex): Promise<void> => {
  await knex.schema.dropTable('message_events');
};
