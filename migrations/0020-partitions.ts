// Logs by the week: dropping what is past its retention is then dropping a partition. The analytics worker adds weeks.
import type { Knex } from 'knex';
import { cutSql, partitionedTables, week, weekOf } from '../lib/kernel/partitions.ts';

export const up = async (knex: Knex): Promise<void> => {
  const monday = weekOf(Date.now());
  for (const one of partitionedTables) await knex.raw(cutSql(one, [monday, monday + week]));
  // Hours before it are not counted again: their messages are gone, their rollups by day stay.
  await knex.raw(
    'ALTER TABLE rollup_state ADD COLUMN kept_from_hour INT UNSIGNED NOT NULL DEFAULT 0',
  );
};

export const down = async (knex: Knex): Promise<void> => {
  await knex.raw('ALTER TABLE rollup_state DROP COLUMN kept_from_hour');
  for (const { table } of partitionedTables) {
    await knex.raw(`ALTER TABLE ${table} REMOVE PARTITIONING`);
  }
};
