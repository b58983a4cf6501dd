// An account as operators see it: who it is, what it has, what it may do, and what went wrong lately.
import { describeBilling, describePrices } from '../billing/describe.ts';
import { type DocumentDeps, limitsDocument } from '../capacity/document.ts';
import { fail } from '../kernel/errors.ts';
import { inTimeOrNull } from '../kernel/in-time.ts';
import { toUsd } from '../kernel/money.ts';
import { maskPhone } from '../kernel/phone.ts';
import { messageView } from '../reports/messages.ts';
import type { ReportStore } from '../reports/store.ts';
import type { FoundAccount, LookupStore } from './lookup-store.ts';

export type AccountDeps = DocumentDeps & {
  lookup: LookupStore;
  reports: Pick<ReportStore, 'find'>;
  config: DocumentDeps['config'] & { priceMicros: number };
};

const failuresShown = 20;
/** The limits are in Redis, the rest is not: it does not wait longer for them. */
const patienceMs = 2_000;
const isoOrNull = (ms: number | null): string | null =>
  ms === null ? null : new Date(ms).toISOString();

/** One line of a list. Whole phone numbers are nowhere shown. */
export const accountLine = (found: FoundAccount) => ({
  id: found.account.id,
  email: found.account.email,
  name: found.account.name,
  company: found.account.company,
  phone: maskPhone(found.account.phone),
  status: found.account.status,
  plan: found.account.billingPlan,
  balance: toUsd(found.balanceMicros),
  created_at: new Date(found.account.createdAt).toISOString(),
});

/** The message of an id as lists show it, its number masked; undefined when it is gone. */
export const maskedMessage = async (
  reports: Pick<ReportStore, 'find'>,
  ref: { accountId: string; id: string },
) => {
  const item = await reports.find(ref.accountId, ref.id);
  return item && { ...messageView(item), phone: maskPhone(item.phone), account_id: ref.accountId };
};

/** @throws NOT_FOUND */
export const describeAccount = async (deps: AccountDeps, id: string) => {
  const found = await deps.lookup.find(id);
  if (!found) throw fail('NOT_FOUND');
  const { account } = found;
  const [billing, prices, limits, failures] = await Promise.all([
    describeBilling(deps, account),
    describePrices(deps, account),
    inTimeOrNull(limitsDocument(deps, account), patienceMs),
    deps.lookup.recentFailures(id, deps.clock.now(), failuresShown),
  ]);
  const shown = await Promise.all(failures.map((ref) => maskedMessage(deps.reports, ref)));
  return {
    ...accountLine(found),
    locale: account.locale,
    suspended_at: isoOrNull(found.suspendedAt),
    suspended_reason: found.suspendedReason,
    shared_number_paused: found.sharedPaused,
    mfa_enabled: account.mfaEnabledAt !== null,
    has_webhook: account.webhookUrl !== null,
    billing,
    prices: prices.items.filter(({ source }) => source === 'account'),
    /** Null while Redis is away. */
    limits,
    recent_failures: shown.filter((one) => one !== undefined),
  };
};
