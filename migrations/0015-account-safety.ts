// Addresses are compared exactly, sessions know when they are over, and revocations have a second witness.
import type { Knex } from 'knex';

/** lib/accounts/rules.ts emailKey, as it was when this migration was written. */
const keyOf = (email: string): string => email.trim().toLowerCase().normalize('NFC');

type Row = { id: Buffer; email: string; email_key: string };

// Keys of before may hold accents in two parts; whoever has the same address in one part keeps it.
const rewriteKeys = async (knex: Knex): Promise<void> => {
  const rows = (await knex('accounts')
    .whereRaw('LENGTH(email_key) <> CHAR_LENGTH(email_key)')
    .select('id', 'email', 'email_key')) as Row[];
  for (const { id, email, email_key: before } of rows) {
    const key = keyOf(email);
    const taken = key === before || (await knex('accounts').where({ email_key: key }).first('id'));
    if (!taken) await knex('accounts').where({ id }).update({ email_key: key });
  }
};

export const up = async (knex: Knex): Promise<void> => {
  await knex.raw(`
    ALTER TABLE accounts
      MODIFY email_key VARCHAR(254) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL`);
  await rewriteKeys(knex);
  await knex.raw(`
    ALTER TABLE sessions
      ADD COLUMN idle_ends_at BIGINT UNSIGNED NOT NULL DEFAULT 0,
      ADD COLUMN forked_at BIGINT UNSIGNED NULL,
      ADD COLUMN purge_at BIGINT UNSIGNED NOT NULL DEFAULT 0,
      ADD KEY sessions_purge (purge_at)`);
  await knex.raw(`
    UPDATE sessions s SET s.idle_ends_at = LEAST(s.ends_at, COALESCE(
      (SELECT MAX(t.expires_at) FROM session_tokens t WHERE t.session_id = s.id AND t.kind = 'refresh'),
      s.ends_at))`);
  await knex.raw('UPDATE sessions SET purge_at = idle_ends_at + 86400000');
  await knex.raw('ALTER TABLE session_tokens ADD KEY session_tokens_expiry (expires_at)');
  await knex.raw('ALTER TABLE mfa_challenges ADD KEY mfa_challenges_account (account_id)');
  await knex.raw(`
    CREATE TABLE revocation_epochs (
      id TINYINT UNSIGNED NOT NULL,
      epoch CHAR(36) CHARACTER SET ascii NOT NULL,
      PRIMARY KEY (id)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`);
  await knex('revocation_epochs').insert({ id: 1, epoch: 'none' });
};

export const down = async (knex: Knex): Promise<void> => {
  await knex.schema.dropTable('revocation_epochs');
  await knex.raw('ALTER TABLE mfa_challenges DROP KEY mfa_challenges_account');
  await knex.raw('ALTER TABLE session_tokens DROP KEY session_tokens_expiry');
  await knex.schema.alterTable('sessions', (table) => {
    table.dropColumns('idle_ends_at', 'forked_at', 'purge_at');
  });
  await knex.raw('ALTER TABLE accounts MODIFY email_key VARCHAR(254) NOT NULL');
};
