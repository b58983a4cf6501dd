// Registering an account.
import { fail } from '../kernel/errors.ts';
import { idTime, newId } from '../kernel/ids.ts';
import { hashPassword } from './passwords.ts';
import type { Account } from './rules.ts';
import type { AccountStore } from './store.ts';

export type Registration = {
  email: string;
  password: string;
  name: string;
  phone: string;
  company: string | null;
  locale: string;
};

/**
 * Makes an active account on the trial plan and the standard tier.
 * @throws EMAIL_TAKEN
 */
export const registerAccount = async (
  deps: { accounts: AccountStore },
  { password, ...given }: Registration,
): Promise<Account> => {
  const id = newId();
  const account: Account = {
    ...given,
    id,
    status: 'active',
    billingPlan: 'trial',
    tier: { name: 'standard', perMinute: null, expiresAt: null },
    createdAt: idTime(id),
    webhookUrl: null,
    spendCapHourlyMicros: null,
    templateLanguage: null,
    mfaEnabledAt: null,
  };
  if (!(await deps.accounts.insert(account, await hashPassword(password))))
    throw fail('EMAIL_TAKEN');
  return account;
};
