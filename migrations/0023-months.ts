// rollup_months: the days of months that are over, added up, so that a year is read in a dozen steps; rollup_heard:
// up to when the analytics worker has heard of everything.
import type { Knex } from 'knex';

export const up = async (knex: Knex): Promise<void> => {
  await knex.raw('CREATE TABLE rollup_months LIKE rollup_days');
  await knex.raw(`
    ALTER TABLE rollup_months
      CHANGE COLUMN day month INT UNSIGNED NOT NULL,
      RENAME INDEX rollup_days_by_day TO rollup_months_by_month`);
  // Months before this one (counted from year 0) are added up; 0: none yet.
  await knex.raw(
    'ALTER TABLE rollup_state ADD COLUMN months_until INT UNSIGNED NOT NULL DEFAULT 0',
  );
  await knex.raw(`
    CREATE TABLE rollup_heard (
      id TINYINT UNSIGNED NOT NULL,
      heard_at BIGINT UNSIGNED NOT NULL,
      PRIMARY KEY (id)
    ) ENGINE=InnoDB`);
};

export const down = async (knex: Knex): Promise<void> => {
  await knex.raw('ALTER TABLE rollup_state DROP COLUMN months_until');
  await knex.schema.dropTable('rollup_months');
  await knex.schema.dropTable('rollup_heard');
};
