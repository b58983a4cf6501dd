// Making an account: with a first live and a first test key, and a secret that signs its webhooks.
import type { Passwords } from '../accounts/passwords.ts';
import type { Account, SharedGrant } from '../accounts/rules.ts';
import { newWebhookSecret, webhookSecretContext } from '../accounts/webhook-secret.ts';
import { fail } from '../kernel/errors.ts';
import { idTime, newId } from '../kernel/ids.ts';
import type { SealContext, Sealer } from '../kernel/secrets.ts';
import { newKey } from '../keys/issue.ts';
import type { Mode } from '../messages/rules.ts';
import type { SignupStore } from './store.ts';

export type Registration = {
  email: string;
  password: string;
  name: string;
  phone: string;
  company: string | null;
  locale: string;
};

export type FirstKeys = Record<Mode, string>;

export type CreateDeps = {
  signups: SignupStore;
  passwords: Passwords;
  sealer: Sealer;
  /** Free verifications of a new account. */
  trialVerifications: number;
  /** What it is granted on the shared number. */
  sharedGrant: SharedGrant;
};

export type Created = { account: Account; keys: FirstKeys; keyIds: Record<Mode, string> };

export const signupKeysContext = (accountId: string): SealContext => ({
  purpose: 'signup-keys',
  record: accountId,
});

const newAccount = ({ password: _, ...given }: Registration): Account => {
  const id = newId();
  return {
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
    sharedPaused: false,
    keysManageAccount: true,
  };
};

/**
 * Makes an active account on the trial plan and the standard tier. With `reveal` the texts of its keys wait, sealed,
 * for the one call that shows them (spec section 4, signup-secret); they are in the result either way.
 * @throws EMAIL_TAKEN
 */
export const createAccount = async (
  { signups, passwords, sealer, trialVerifications, sharedGrant }: CreateDeps,
  registration: Registration,
  { reveal = false } = {},
): Promise<Created> => {
  const passwordHash = await passwords.hash(registration.password);
  const account = newAccount(registration);
  const first = (mode: Mode) =>
    newKey({ accountId: account.id, name: `First ${mode} key`, mode, madeByKey: null });
  const [live, test] = [first('live'), first('test')];
  const keys = { live: live.key, test: test.key };
  const inserted = await signups.insert({
    ...{ account, passwordHash, keys: [live, test], trialVerifications },
    sharedGrant,
    webhookSecret: sealer.seal(newWebhookSecret(), webhookSecretContext(account.id)),
    signupKeys: reveal ? sealer.seal(JSON.stringify(keys), signupKeysContext(account.id)) : null,
  });
  if (!inserted) throw fail('EMAIL_TAKEN');
  return { account, keys, keyIds: { live: live.record.id, test: test.record.id } };
};
