// What the owner of an account changes about it.
import { fail, invalid } from '../kernel/errors.ts';
import { phoneFacts } from '../kernel/phone.ts';
import type { Account } from './rules.ts';
import type { AccountChanges, AccountStore } from './store.ts';

type Deps = {
  accounts: AccountStore;
  revocations: { announce(accountId: string): Promise<void> };
  /** An address for webhooks was set, perhaps again. */
  onEndpoint?: (accountId: string) => Promise<void>;
};

/** Refuses what is no address to post to. @throws VALIDATION_ERROR */
const requireAddress = (url: string): void => {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (!parsed?.hostname || parsed.username || parsed.password) {
    const issue = 'must be an https address with a host and without a user name or password';
    throw invalid({ field: 'webhook_url', issue });
  }
};

/**
 * Writes the changes and answers the account as it is now, known to every process within a second.
 * @throws VALIDATION_ERROR
 */
export const changeAccount = async (
  { accounts, revocations, onEndpoint }: Deps,
  accountId: string,
  changes: AccountChanges,
): Promise<Account> => {
  if (changes.phone !== undefined && !phoneFacts(changes.phone).possible) {
    throw invalid({ field: 'phone', issue: 'is not a number of any country' });
  }
  if (changes.webhookUrl) requireAddress(changes.webhookUrl);
  await accounts.change(accountId, changes);
  if (changes.webhookUrl) await onEndpoint?.(accountId);
  await revocations.announce(accountId);
  const account = await accounts.find(accountId);
  if (!account) throw fail('NOT_FOUND');
  return account;
};
