// Acts: what was done to the security of an account, with which credential and from where, and the event that tells it.
import type { EventWire } from '../jobs.ts';
import { newId } from '../kernel/ids.ts';
import { type AccountEventType, accountEvent } from '../messages/events.ts';

/** What an act was made with: a credential of the account, a code for a forgotten password, or by an operator. */
export const actors = ['session', 'key', 'reset_code', 'operator'] as const;

/** Who acts, as far as it is known. */
export type Act = {
  by: (typeof actors)[number];
  /** Id of the session or the key; null for the others. */
  credentialId: string | null;
  /** Address of the call; null where an operator acts. */
  ip: string | null;
  requestId: string | null;
};

/** What can stand in the security log. */
export const securityActions = [
  'login',
  'key_created',
  'key_revoked',
  'first_keys_shown',
  'settings_changed',
  'profile_changed',
  'phone_changed',
  'password_changed',
  'mfa_enabled',
  'mfa_disabled',
  'recovery_codes_renewed',
  'sessions_ended',
  'whatsapp_connected',
  'whatsapp_disconnected',
] as const;

export type SecurityAction = (typeof securityActions)[number];

/** One setting before and after; null: there was no value, or the value is a secret. */
export type Change = { setting: string; from: string | null; to: string | null };

/** An entry of the security log. */
export type SecurityEntry = Act & {
  /** Carries the time. */
  id: string;
  accountId: string;
  action: SecurityAction;
  /** What it was done to: a key or a session. */
  subjectId: string | null;
  changes: readonly Change[];
};

/** How long entries are kept, in days. */
export const securityLogDays = 180;

/** A new entry; `subjectId` and `changes` where there are any. */
export const newEntry = (
  accountId: string,
  act: Act,
  what: { action: SecurityAction; subjectId?: string; changes?: readonly Change[] },
): SecurityEntry => ({
  id: newId(),
  accountId,
  by: act.by,
  credentialId: act.credentialId,
  ip: act.ip,
  requestId: act.requestId,
  action: what.action,
  subjectId: what.subjectId ?? null,
  changes: what.changes ?? [],
});

type SecurityEventType = Extract<AccountEventType, `security.${string}`>;

/** The event that tells of an entry, at `at` (ms); `data` is what its type says beyond who acted. */
export const securityEvent = (
  type: SecurityEventType,
  entry: SecurityEntry,
  { at, data }: { at: number; data: Record<string, unknown> },
): EventWire =>
  accountEvent(type, {
    accountId: entry.accountId,
    mode: 'live',
    at,
    requestId: entry.requestId ?? entry.id,
    subject: entry.id,
    data: { ...data, by: entry.by, credential_id: entry.credentialId, ip: entry.ip },
  });
