// Rollups: what the messages of an account come to, by hour and by day, and the marks of hours to be counted again.
import type { Knex } from 'knex';

const spans = Array.from({ length: 15 }, (_, index) => index);

const counts = [
  ...['requested', 'accepted', 'delivered', 'verified', 'failed', 'expired'].map(
    (name) => `${name} INT UNSIGNED NOT NULL`,
  ),
  ...['spent_micros', 'deliver_ms', 'verify_ms'].map((name) => `${name} BIGINT UNSIGNED NOT NULL`),
  // Latency histograms: one count per span, so that hours add up to days and to percentiles.
  ...['deliver', 'verify'].flatMap((of) => spans.map((at) => `${of}_${at} INT UNSIGNED NOT NULL`)),
];

const table = (name: string, unit: 'hour' | 'day'): string => `
  CREATE TABLE ${name} (
    account_id BINARY(16) NOT NULL,
    mode ENUM('live', 'test') NOT NULL,
    ${unit} INT UNSIGNED NOT NULL,
    channel ENUM('whatsapp', 'telegram', 'none') NOT NULL,
    country CHAR(2) CHARACTER SET ascii NOT NULL,
    ${counts.join(',\n')},
    PRIMARY KEY (account_id, mode, ${unit}, channel, country),
    KEY ${name}_by_${unit} (${unit})
  ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`;

export const up = async (knex: Knex): Promise<void> => {
  await knex.raw(table('rollup_hours', 'hour'));
  await knex.raw(table('rollup_days', 'day'));
  // A mark says "count this hour of this account again"; marks of one short slot of time are one row.
  await knex.raw(`
    CREATE TABLE rollup_marks (
      slot BIGINT UNSIGNED NOT NULL,
      account_id BINARY(16) NOT NULL,
      hour INT UNSIGNED NOT NULL,
      PRIMARY KEY (slot, account_id, hour),
      KEY rollup_marks_by_account (account_id, slot)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`);
  // One row: who counts holds it, and the nightly recount leaves in it what it found.
  await knex.raw(`
    CREATE TABLE rollup_state (
      id TINYINT UNSIGNED NOT NULL,
      recounted_day INT UNSIGNED NOT NULL DEFAULT 0,
      claimed_until BIGINT UNSIGNED NOT NULL DEFAULT 0,
      recounted_at BIGINT UNSIGNED NULL,
      compared BIGINT UNSIGNED NOT NULL DEFAULT 0,
      drifted BIGINT UNSIGNED NOT NULL DEFAULT 0,
      PRIMARY KEY (id)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`);
  await knex.raw('INSERT INTO rollup_state (id) VALUES (1)');
  // Messages that were there before: each hour is counted once for all accounts (the id of none).
  await knex.raw(`
    INSERT INTO rollup_marks (slot, account_id, hour)
    SELECT DISTINCT 0, UNHEX(REPEAT('00', 16)), CONV(HEX(SUBSTR(id, 1, 6)), 16, 10) DIV 3600000 FROM messages`);
};

export const down = async (knex: Knex): Promise<void> => {
  for (const name of ['rollup_state', 'rollup_marks', 'rollup_days', 'rollup_hours']) {
    await knex.schema.dropTable(name);
  }
};
