// Accounts in MySQL.
import { type Database, isDuplicateKey } from '../infra/mysql.ts';
import { idBytes, idText } from '../kernel/ids.ts';
import { type Account, emailKey } from './rules.ts';

type Row = Record<string, unknown>;

const numberOrNull = (value: unknown): number | null => (value === null ? null : Number(value));
const textOrNull = (value: unknown): string | null => (value === null ? null : String(value));

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
});

export type AccountStore = ReturnType<typeof createAccountStore>;

export const createAccountStore = (db: Database) => ({
  /** Answers false when an account with this e-mail address exists. */
  insert: async (account: Account, passwordHash: string): Promise<boolean> => {
    try {
      await db('accounts').insert({
        id: idBytes(account.id),
        email: account.email,
        email_key: emailKey(account.email),
        password_hash: passwordHash,
        name: account.name,
        phone: account.phone,
        company: account.company,
        locale: account.locale,
        status: account.status,
        billing_plan: account.billingPlan,
        tier: account.tier.name,
        tier_per_minute: account.tier.perMinute,
        tier_expires_at: account.tier.expiresAt,
        created_at: account.createdAt,
      });
      return true;
    } catch (error) {
      if (isDuplicateKey(error)) return false;
      throw error;
    }
  },

  find: async (id: string): Promise<Account | undefined> => {
    const row = await db<Row>('accounts')
      .where({ id: idBytes(id) })
      .first();
    return row === undefined ? undefined : accountFromRow(row);
  },

  findByEmail: async (email: string): Promise<Account | undefined> => {
    const row = await db<Row>('accounts')
      .where({ email_key: emailKey(email) })
      .first();
    return row === undefined ? undefined : accountFromRow(row);
  },

  setStatus: async (id: string, status: Account['status']): Promise<void> => {
    await db('accounts')
      .where({ id: idBytes(id) })
      .update({ status });
  },

  setTier: async (id: string, tier: Account['tier']): Promise<void> => {
    await db('accounts')
      .where({ id: idBytes(id) })
      .update({
        tier: tier.name,
        tier_per_minute: tier.perMinute,
        tier_expires_at: tier.expiresAt,
      });
  },
});
