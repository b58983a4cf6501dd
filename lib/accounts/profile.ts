// What the owner of an account changes about it.
import { type AddressRules, refusalOf } from '../infra/addresses.ts';
import { fail, invalid } from '../kernel/errors.ts';
import { phoneFacts } from '../kernel/phone.ts';
import type { Account } from './rules.ts';
import type { AccountChanges, AccountStore } from './store.ts';

type Deps = {
  accounts: AccountStore;
  revocations: { announce(accountId: string): Promise<void> };
  webhookRules: AddressRules;
  /** An address for webhooks was set, perhaps again. */
  onEndpoint?: (accountId: string) => Promise<void>;
};

/** Refuses what webhooks of the account are not posted to, as far as its text tells. @throws VALIDATION_ERROR */
const requireAddress = (url: string, accountId: string, rules: AddressRules): void => {
  if (!URL.canParse(url)) {
    const issue = 'must be an https address with a host and without a user name or password';
    throw invalid({ field: 'webhook_url', issue });
  }
  const refusal = refusalOf(new URL(url), accountId, rules);
  if (refusal) throw invalid({ field: 'webhook_url', issue: refusal.issue });
};

/**
 * Writes the changes and answers the account as it is now, known to every process within a second.
 * @throws VALIDATION_ERROR
 */
export const changeAccount = async (
  { accounts, revocations, webhookRules, onEndpoint }: Deps,
  accountId: string,
  changes: AccountChanges,
): Promise<Account> => {
  if (changes.phone !== undefined && !phoneFacts(changes.phone).possible) {
    throw invalid({ field: 'phone', issue: 'is not a number of any country' });
  }
  if (changes.webhookUrl) requireAddress(changes.webhookUrl, accountId, webhookRules);
  await accounts.change(accountId, changes);
  if (changes.webhookUrl) await onEndpoint?.(accountId);
  await revocations.announce(accountId);
  const account = await accounts.find(accountId);
  if (!account) throw fail('NOT_FOUND');
  return account;
};
