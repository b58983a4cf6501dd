// telegram_links: which chat stands for which recipient of an account; telegram_proofs: who has shown which number.
import type { Knex } from 'knex';

export const up = async (knex: Knex): Promise<void> => {
  await knex.raw(`
    CREATE TABLE telegram_links (
      account_id BINARY(16) NOT NULL,
      mode ENUM('live', 'test') NOT NULL,
      phone VARCHAR(16) CHARACTER SET ascii NOT NULL,
      chat_id BIGINT NOT NULL,
      proof ENUM('contact', 'tap') NOT NULL,
      linked_at BIGINT UNSIGNED NOT NULL,
      PRIMARY KEY (account_id, mode, phone),
      KEY telegram_links_chat (chat_id)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`);
  await knex.raw(`
    CREATE TABLE telegram_proofs (
      chat_id BIGINT NOT NULL,
      phone VARCHAR(16) CHARACTER SET ascii NOT NULL,
      proven_at BIGINT UNSIGNED NOT NULL,
      PRIMARY KEY (chat_id, phone)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`);
};

export const down = async (knex: Knex): Promise<void> => {
  await knex.schema.dropTable('telegram_proofs');
  await knex.schema.dropTable('telegram_links');
};
