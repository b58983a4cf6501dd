// How a row of accounts is read.
import { idText } from '../kernel/ids.ts';
import type { Account } from './rules.ts';

export type Row = Record<string, unknown>;

export const numberOrNull = (value: unknown): number | null =>
  value === null ? null : Number(value);
export const textOrNull = (value: unknown): string | null =>
  value === null ? null : String(value);

/** Reads the account columns of a row; other rooms' joins use it too. */
export const accountFromRow = (row: Row): Account => ({
  id: idText(row.id as Buffer),
  email: String(row.email),
  name: String(row.name),
  phone: String(row.phone),
  company: textOrNull(row.company),
  locale: String(row.locale),
  status: row.status as Account['status'],
  billingPlan: row.billing_plan as Account['billingPlan'],
  tier: {
    name: row.tier as Account['tier']['name'],
    perMinute: numberOrNull(row.tier_per_minute),
    expiresAt: numberOrNull(row.tier_expires_at),
  },
  createdAt: Number(row.created_at),
  webhookUrl: textOrNull(row.webhook_url),
  spendCapHourlyMicros: numberOrNull(row.spend_cap_hourly_micros),
  templateLanguage: textOrNull(row.template_language),
  mfaEnabledAt: numberOrNull(row.mfa_enabled_at),
  sharedPaused: Boolean(row.shared_paused),
  keysManageAccount: Boolean(row.keys_manage_account),
});
