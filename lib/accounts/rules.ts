// Accounts: what one is, and which send allowance it has at a given time.
import type { Plan } from '../messages/rules.ts';

export type AccountStatus = 'active' | 'suspended' | 'closed';

/** The stored tier; a reviewed one ends by itself (spec section 8). */
export type TierName = 'standard' | 'tier-1000' | 'tier-5000' | 'custom';

export type Account = {
  id: string;
  email: string;
  name: string;
  phone: string;
  company: string | null;
  locale: string;
  status: AccountStatus;
  billingPlan: Plan;
  tier: { name: TierName; perMinute: number | null; expiresAt: number | null };
  createdAt: number;
  /** Where events go; null: nowhere. */
  webhookUrl: string | null;
  /** Most that verifications may cost in a UTC hour, micro-USD; null: no cap. */
  spendCapHourlyMicros: number | null;
  /** Language of the account's own template; null: that of the settings. */
  templateLanguage: string | null;
  /** Since when a second factor is asked for at login; null: it is not. */
  mfaEnabledAt: number | null;
  /** Whether operators keep the account off the shared number. */
  sharedPaused: boolean;
  /** Whether API keys may change the account; without it they send and read, and nothing more. */
  keysManageAccount: boolean;
};

/** What the owner may change. */
export type AccountChanges = Partial<
  Pick<
    Account,
    | 'name'
    | 'phone'
    | 'company'
    | 'locale'
    | 'webhookUrl'
    | 'spendCapHourlyMicros'
    | 'templateLanguage'
    | 'keysManageAccount'
  >
>;

/** Whether a change takes the hourly cap away or raises it: more may be spent after it than before. */
const loosensCap = (before: Account, { spendCapHourlyMicros: to }: AccountChanges): boolean => {
  const from = before.spendCapHourlyMicros;
  if (to === undefined || from === null) return false;
  return to === null || to > from;
};

/** Whether a session needs a fresh proof for a change. */
export const isSensitive = (before: Account, changes: AccountChanges): boolean =>
  changes.webhookUrl !== undefined ||
  changes.phone !== undefined ||
  changes.keysManageAccount !== undefined ||
  loosensCap(before, changes);

/**
 * How many messages an account that never made a deposit may have unverified on the shared number: at first, and more
 * for each that was verified.
 */
export type SharedGrant = { unverified: number; perVerified: number };

/**
 * E-mail addresses are compared without case and surrounding space, an accent being part of its letter however it is
 * encoded (NFC); they are kept as typed. The database compares keys byte by byte: one address, one key, one counter.
 */
export const emailKey = (email: string): string => email.trim().toLowerCase().normalize('NFC');

/** Argon2id as the OWASP Password Storage Cheat Sheet has it: 19 MiB, two passes, one lane. */
export const hashParameters = { memoryCost: 19 * 1024, timeCost: 2, parallelism: 1 };

/** How every hash of these parameters begins. */
export const hashPrefix = '$argon2id$v=19$m=19456,t=2,p=1$';
