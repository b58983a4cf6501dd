// What accounts are still to be told, whatever it is about: the news of their money was the first of it.
import type { Knex } from 'knex';
import { derivedId } from '../lib/kernel/ids.ts';

type Row = Record<string, unknown>;

export const up = async (knex: Knex): Promise<void> => {
  // An event as it is published, under its own id; deleted when the broker has it.
  await knex.raw(`
    CREATE TABLE account_news (
      id BINARY(16) NOT NULL,
      account_id BINARY(16) NOT NULL,
      mode VARCHAR(4) CHARACTER SET ascii NOT NULL,
      type VARCHAR(40) CHARACTER SET ascii NOT NULL,
      request_id VARCHAR(200) NOT NULL,
      data TEXT NOT NULL,
      at BIGINT UNSIGNED NOT NULL,
      PRIMARY KEY (id),
      KEY account_news_by_age (at)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`);
  for (const row of (await knex('billing_news')) as Row[]) {
    const id = derivedId(String(row.subject), String(row.type));
    await knex('account_news').insert({
      ...{ id: Buffer.from(id, 'hex'), account_id: row.account_id, mode: 'live', type: row.type },
      ...{ request_id: id, data: row.data, at: row.created_at },
    });
  }
  await knex.raw('DROP TABLE billing_news');
  // It told apart news that came again, which is told once by now.
  await knex.raw('ALTER TABLE whatsapp_templates DROP COLUMN changed_at');
};

export const down = async (knex: Knex): Promise<void> => {
  await knex.raw(`
    CREATE TABLE billing_news (
      id BINARY(16) NOT NULL,
      account_id BINARY(16) NOT NULL,
      type VARCHAR(40) CHARACTER SET ascii NOT NULL,
      subject VARCHAR(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
      data TEXT NOT NULL,
      created_at BIGINT UNSIGNED NOT NULL,
      PRIMARY KEY (id),
      KEY billing_news_by_age (created_at)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`);
  await knex.schema.dropTable('account_news');
  await knex.raw('ALTER TABLE whatsapp_templates ADD COLUMN changed_at BIGINT UNSIGNED NULL');
};
