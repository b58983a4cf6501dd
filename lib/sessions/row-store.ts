// Rows of sessions, read together with their account and a token.
import { accountFromRow } from '../accounts/row.ts';
import { idText } from '../kernel/ids.ts';
import type { FoundSession, Session } from './rules.ts';

type Row = Record<string, unknown>;

export const sessionFromRow = (row: Row): Session => ({
  id: idText(row.session_id as Buffer),
  accountId: idText(row.account_id as Buffer),
  createdAt: Number(row.session_created_at),
  lastUsedAt: Number(row.last_used_at),
  ip: String(row.ip),
  userAgent: String(row.user_agent),
  mfa: Boolean(row.mfa),
  provenAt: Number(row.proven_at),
  endsAt: Number(row.ends_at),
  idleEndsAt: Number(row.idle_ends_at),
});

const plain = ['last_used_at', 'ip', 'user_agent', 'mfa', 'proven_at', 'ends_at', 'idle_ends_at'];

/** The columns of table `s` that `sessionFromRow` and `foundFromRow` read. */
export const sessionColumns = [
  's.id as session_id',
  's.account_id',
  's.created_at as session_created_at',
  ...[...plain, 'revoked_at', 'forked_at'].map((name) => `s.${name}`),
  's.generation as session_generation',
];

/** Reads a row that holds the account's columns and `token_expires_at` too. */
export const foundFromRow = (row: Row): FoundSession => ({
  session: sessionFromRow(row),
  account: accountFromRow(row),
  expiresAt: Number(row.token_expires_at),
  revokedAt: row.revoked_at === null ? null : Number(row.revoked_at),
});
