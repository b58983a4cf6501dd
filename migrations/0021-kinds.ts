// Logs by kind: one index that finds the newest rows of any filter, in place of those by state alone.
import type { Knex } from 'knex';

export const up = async (knex: Knex): Promise<void> => {
  await knex.raw(`
    ALTER TABLE messages
      DROP KEY messages_by_status,
      ADD KEY messages_by_kind (account_id, mode, status, channel, id)`);
  await knex.raw(`
    ALTER TABLE totp_log
      DROP KEY totp_log_by_status,
      ADD KEY totp_log_by_kind (account_id, mode, status, id)`);
};

export const down = async (knex: Knex): Promise<void> => {
  await knex.raw(`
    ALTER TABLE totp_log
      DROP KEY totp_log_by_kind,
      ADD KEY totp_log_by_status (account_id, status, id)`);
  await knex.raw(`
    ALTER TABLE messages
      DROP KEY messages_by_kind,
      ADD KEY messages_by_status (account_id, status, id)`);
};
