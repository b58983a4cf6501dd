// Balance, trial, cap and prices of an account, in the wire's own names and in USD.
import type { Account } from '../accounts/rules.ts';
import type { Clock } from '../kernel/clock.ts';
import { fail } from '../kernel/errors.ts';
import { toUsd } from '../kernel/money.ts';
import type { LedgerStore } from './ledger-store.ts';
import type { PriceStore } from './price-store.ts';
import { hourOf, minimumBalanceMicros, totpPriceMicros } from './rules.ts';

type Deps = {
  ledger: LedgerStore;
  prices: PriceStore;
  clock: Clock;
  config: { priceMicros: number };
};

/** GET /v1/clients/billing. @throws NOT_FOUND */
export const describeBilling = async ({ ledger, clock, config }: Deps, account: Account) => {
  const balance = await ledger.balance(account.id);
  if (!balance) throw fail('NOT_FOUND');
  const { trialGranted, trialUsed, spentHour, spentMicros } = balance;
  const cap = account.spendCapHourlyMicros;
  return {
    plan: account.billingPlan,
    balance: toUsd(balance.micros),
    minimum_balance: toUsd(minimumBalanceMicros),
    currency: 'USD' as const,
    trial_granted: trialGranted,
    trial_remaining: Math.max(trialGranted - trialUsed, 0),
    spend_cap_hourly: cap === null ? null : toUsd(cap),
    spent_this_hour: spentHour === hourOf(clock.now()) ? toUsd(spentMicros) : 0,
    price_per_verification: toUsd(config.priceMicros),
    price_per_totp_verification: toUsd(totpPriceMicros),
  };
};

/** GET /v1/clients/pricing: one entry per country, the account's own price before the platform's. */
export const describePrices = async ({ prices, config }: Deps, account: Account) => {
  const [platform, own] = await Promise.all([prices.platform(), prices.own(account.id)]);
  const entry = (source: 'account' | 'platform', country: string, micros: number | null) => ({
    ...{ country, price: micros === null ? null : toUsd(micros), source },
  });
  const items = [
    ...[...own].map(([country, micros]) => entry('account', country, micros)),
    ...platform
      .filter(({ country }) => !own.has(country))
      .map(({ country, priceMicros }) => entry('platform', country, priceMicros)),
  ];
  return {
    currency: 'USD' as const,
    default_price: toUsd(config.priceMicros),
    totp_price: toUsd(totpPriceMicros),
    items: items.toSorted((one, other) => one.country.localeCompare(other.country)),
  };
};
