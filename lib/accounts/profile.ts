// What the owner of an account changes about it.
import { type AddressRules, refusalOf } from '../infra/addresses.ts';
import type { Database } from '../infra/mysql.ts';
import type { Clock } from '../kernel/clock.ts';
import { fail, invalid } from '../kernel/errors.ts';
import type { Log } from '../kernel/log.ts';
import { phoneFacts } from '../kernel/phone.ts';
import type { Announcer } from '../messages/announce.ts';
import { tellNews } from '../messages/news.ts';
import type { NewsStore } from '../messages/news-store.ts';
import type { Act } from './acts.ts';
import type { Allow } from './change-store.ts';
import { type Account, type AccountChanges, isSensitive } from './rules.ts';
import type { AccountStore } from './store.ts';

type Deps = {
  accounts: AccountStore;
  revocations: { announce(accountId: string): Promise<void> };
  webhookRules: AddressRules;
  news: NewsStore;
  announcer: Announcer;
  clock: Clock;
  log: Log;
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

/** Who changes an account, and whether the session was proven freshly; `mayAct` refuses a key that may not. */
export type Changer = {
  act: Act;
  proven: boolean;
  mayAct(trx: Database, given: { account: Account; act: Act }): Promise<void>;
};

/**
 * Writes the changes and answers the account as it is now, known to every process within a second. The security log
 * and the events of it are written with them.
 * @throws VALIDATION_ERROR, REAUTH_REQUIRED (a sensitive change by a session without a fresh proof), NOT_FOUND, and
 * what `mayAct` refuses with
 */
export const changeAccount = async (
  deps: Deps,
  accountId: string,
  changes: AccountChanges,
  { act, proven, mayAct }: Changer,
): Promise<Account> => {
  const { accounts, revocations, webhookRules, clock, onEndpoint } = deps;
  if (changes.phone !== undefined && !phoneFacts(changes.phone).possible) {
    throw invalid({ field: 'phone', issue: 'is not a number of any country' });
  }
  if (changes.webhookUrl) requireAddress(changes.webhookUrl, accountId, webhookRules);
  const allow: Allow = async (trx, account) => {
    await mayAct(trx, { account, act });
    if (act.by === 'session' && !proven && isSensitive(account, changes)) {
      throw fail('REAUTH_REQUIRED');
    }
  };
  const told = await accounts.change(accountId, changes, { act, at: clock.now(), allow });
  if (!told) throw fail('NOT_FOUND');
  if (changes.webhookUrl) await onEndpoint?.(accountId);
  await revocations.announce(accountId);
  await tellNews(deps, told);
  const account = await accounts.find(accountId);
  if (!account) throw fail('NOT_FOUND');
  return account;
};
