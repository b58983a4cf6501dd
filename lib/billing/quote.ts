// What a send or a TOTP verification costs and whether the account may make it: the one gate before anything is done.

import { isOwnAccount } from '../accounts/platform.ts';
import type { Account } from '../accounts/rules.ts';
import type { Clock } from '../kernel/clock.ts';
import { day, hour } from '../kernel/clock.ts';
import { fail, type ServiceError } from '../kernel/errors.ts';
import type { Log } from '../kernel/log.ts';
import { toUsd } from '../kernel/money.ts';
import { describeError } from '../kernel/redact.ts';
import type { Message, Mode, Plan } from '../messages/rules.ts';
import type {
  CreditStore,
  ExposureCaps,
  ExposureHour,
  Holding,
  Missing,
  Reserved,
  ReserveRequest,
} from './credit-store.ts';
import type { LedgerStore } from './ledger-store.ts';
import type { DestinationPrice, Prices } from './prices.ts';
import {
  type Balance,
  dueHoldMs,
  exposureHours,
  freeLeft,
  holdMs,
  hourOf,
  owedHoldMs,
  sharedAllowance,
  totpPriceMicros,
} from './rules.ts';
import type { ExposedCount } from './sent-store.ts';

export type Quote = { plan: Plan; priceMicros: number };

export type QuoteRequest = {
  account: Account;
  mode: Mode;
  country: string;
  /** What the price is held under: the id of the message, or of the attempt at a TOTP code. */
  holdId: string;
  /** Whether the shared number would send it. */
  shared: boolean;
  /** How long it may wait for its channel with nobody waiting for it (ms); its hold lasts as much longer. */
  waitsMs?: number;
};

export type QuoteDeps = {
  prices: Prices;
  credit: CreditStore;
  ledger: LedgerStore;
  clock: Clock;
  log: Log;
  /** Countries the shared number serves; empty: all. */
  sharedCountries(): ReadonlySet<string>;
  sharedHourly: number;
  exposure: ExposureCaps;
};

export type Quotes = {
  /**
   * Plan and price of a send, frozen on its message, with the price held. Asked in this order, each error before the
   * next question: is there a price (INTL_PRICING_NOT_CONFIGURED), does it cover the cost (INTL_PRICE_BELOW_COST), does
   * the shared number serve the country (CENTRAL_WHATSAPP_UNSUPPORTED_REGION), is it paused
   * (CENTRAL_WHATSAPP_PAUSED); then, in one step of Redis, the trial (DEPOSIT_REQUIRED, FREE_TRIAL_PAUSED,
   * FREE_TRIAL_EXHAUSTED), the balance (DEPOSIT_REQUIRED, INSUFFICIENT_CREDITS), the cap (SPEND_CAP_EXCEEDED), the
   * shared number's allowance (CENTRAL_WHATSAPP_CONNECT_REQUIRED) and hour (CENTRAL_WHATSAPP_LIMIT), and what unverified
   * messages of the last 24 hours cost the platform (RATE_LIMIT_EXCEEDED, fraud_protection). The credit step is all or
   * nothing. On the trial the price is held only for what could not be free if every open code succeeded.
   */
  send(request: QuoteRequest): Promise<Quote>;
  /** Nothing was sent, or it failed for good after a channel took it: what `send` took is given back. */
  cancel(
    request: Pick<QuoteRequest, 'account' | 'mode' | 'holdId'> & { taken?: boolean },
  ): Promise<void>;
  /** It was verified and could not be charged yet: what it holds stays until it is. */
  keep(message: Pick<Message, 'id' | 'accountId' | 'mode'>): Promise<void>;
  /**
   * What open codes hold of an account and what it sent, of this balance; what Redis does not know is read from MySQL
   * first.
   */
  holding(account: Account, balance: Balance): Promise<Holding>;
  /** Plan and price of a TOTP verification; held under that id, or only looked at without one. */
  totp(request: { account: Account; mode: Mode; holdId: string | undefined }): Promise<Quote>;
};

const pausedSeconds = 60;

/** The waiting members of an error, `seconds` from `now` on. */
const waiting = (now: number, seconds: number, windowMs: number) => ({
  retry_after_seconds: seconds,
  reset_at: new Date(now + seconds * 1000).toISOString(),
  window_seconds: windowMs / 1000,
});

const secondsIn = (ms: number): number => Math.max(Math.ceil(ms / 1000), 1);

const ofAccount = { layer: 'origin', dimension: 'account' } as const;

/** The error of a credit step that refused, with what its code tells the caller. */
const errorOf = (
  { code, waitMs, limitMicros }: Extract<Reserved, { kind: 'refused' }>,
  now: number,
): ServiceError => {
  const toNextHour = secondsIn((hourOf(now) + 1) * hour - now);
  switch (code) {
    case 'SPEND_CAP_EXCEEDED':
      return fail(code, { reason: 'spend_cap', ...ofAccount, ...waiting(now, toNextHour, hour) });
    case 'CENTRAL_WHATSAPP_LIMIT':
      return fail(code, { reason: 'hourly', ...ofAccount, ...waiting(now, toNextHour, hour) });
    case 'FREE_TRIAL_PAUSED':
      return fail(code, { retry_after_seconds: pausedSeconds });
    case 'RATE_LIMIT_EXCEEDED': {
      const seconds = Math.min(secondsIn(waitMs), day / 1000);
      const message = `Messages of the last 24 hours that nobody verified may cost ${toUsd(limitMicros)} USD, and this one would exceed that. Every code that is verified makes room.`;
      const extras = { reason: 'fraud_protection', ...ofAccount, ...waiting(now, seconds, day) };
      return fail(code, extras, { message });
    }
    default:
      return fail(code);
  }
};

/** Sandbox and platform are never charged nor asked. */
const free = (account: Account, mode: Mode): Quote | undefined => {
  if (isOwnAccount(account.id)) return { plan: 'per_message', priceMicros: 0 };
  return mode === 'test' ? { plan: account.billingPlan, priceMicros: 0 } : undefined;
};

/** What hours of messages come to at the costs of today. */
const pricedHours = async (
  prices: Prices,
  counted: readonly ExposedCount[],
): Promise<ExposureHour[]> => {
  const costs = await Promise.all(counted.map(({ country }) => prices.costOf(country)));
  return counted.flatMap(({ hour: at, unverified, chargedMicros }, index): ExposureHour[] => [
    { kind: 'cost', hour: at, micros: unverified * (costs[index] ?? 0) },
    { kind: 'charged', hour: at, micros: chargedMicros },
  ]);
};

/** Reads from MySQL what the credit step needs and Redis does not know, and notes it there. */
const createLearn =
  ({ ledger, credit, prices, clock }: Pick<QuoteDeps, 'ledger' | 'credit' | 'prices' | 'clock'>) =>
  async (accountId: string, missing: Missing): Promise<void> => {
    const balance = await ledger.balance(accountId);
    if (!balance) throw new Error('the account is gone');
    const now = clock.now();
    const { shared: grant, trialGranted } = balance;
    const most = sharedAllowance(grant, trialGranted) + 1;
    const [shared, counted] = await Promise.all([
      // Who has paid has no allowance to count against.
      missing.shared && !balance.deposited ? ledger.countShared(accountId, most) : undefined,
      missing.exposure
        ? ledger.countExposed(accountId, hourOf(now) - exposureHours + 1)
        : undefined,
    ]);
    const hours = counted && (await pricedHours(prices, counted));
    await credit.note(accountId, balance, {
      ...(shared === undefined ? {} : { shared }),
      ...(hours === undefined ? {} : { exposure: { hours, now } }),
    });
  };

/** Logs a failure that a hold heals from by its own end. */
const said = (work: Promise<void>, log: Log, words: string): Promise<void> =>
  work.catch((error: unknown) => log.warn({ reason: describeError(error) }, words));

type Learn = ReturnType<typeof createLearn>;

/** Asks the credit step, and once more when Redis did not know enough to decide. */
const createReserve =
  ({ credit }: Pick<QuoteDeps, 'credit'>, learn: Learn) =>
  async (request: ReserveRequest): Promise<Quote> => {
    let reserved = await credit.reserve(request);
    if (reserved.kind === 'miss') {
      await learn(request.accountId, reserved.missing);
      reserved = await credit.reserve(request);
    }
    if (reserved.kind === 'miss') throw new Error('a balance that was just noted is not known');
    if (reserved.kind === 'refused') throw errorOf(reserved, request.now);
    return { plan: reserved.plan, priceMicros: reserved.priceMicros };
  };

/** What the shared number asks of a send before its credit is looked at. */
const createRequireShared =
  ({ prices, sharedCountries }: Pick<QuoteDeps, 'prices' | 'sharedCountries'>) =>
  async (account: Account, country: string): Promise<void> => {
    const served = sharedCountries();
    if (served.size > 0 && !served.has(country)) {
      throw fail('CENTRAL_WHATSAPP_UNSUPPORTED_REGION');
    }
    if (account.sharedPaused || (await prices.isPaused('shared_number'))) {
      throw fail('CENTRAL_WHATSAPP_PAUSED', { retry_after_seconds: pausedSeconds });
    }
  };

export const createQuotes = (deps: QuoteDeps): Quotes => {
  const { prices, credit, clock, log, sharedHourly, exposure } = deps;
  const learn = createLearn(deps);
  const reserve = createReserve(deps, learn);
  const requireShared = createRequireShared(deps);

  const asked = async (
    account: Account,
    holdId: string | undefined,
    { priceMicros, costMicros }: DestinationPrice,
  ): Promise<ReserveRequest> => ({
    accountId: account.id,
    holdId,
    holdForMs: dueHoldMs,
    priceMicros,
    costMicros,
    capMicros: account.spendCapHourlyMicros,
    plan: account.billingPlan,
    trialPaused: await prices.isPaused('trial'),
    shared: undefined,
    exposure,
    now: clock.now(),
  });

  return {
    send: async ({ account, mode, country, holdId, shared, waitsMs = 0 }) => {
      const nothing = free(account, mode);
      if (nothing) return nothing;
      const price = await prices.of(account.id, country);
      if (shared) await requireShared(account, country);
      const perMessage = account.billingPlan === 'per_message';
      // What is paid for when it is sent, and what the account's own number sends, is no cost that may stay unpaid.
      const costMicros = shared && !perMessage ? price.costMicros : 0;
      const request = await asked(account, holdId, { priceMicros: price.priceMicros, costMicros });
      return reserve({
        ...request,
        holdForMs: perMessage ? dueHoldMs : holdMs + waitsMs,
        shared: shared ? { hourly: sharedHourly } : undefined,
      });
    },
    cancel: async ({ account, mode, holdId, taken = false }) => {
      if (free(account, mode)) return;
      const released = credit.release(account.id, holdId, { unsent: !taken });
      await said(released, log, 'a hold is left to its end');
    },
    keep: async ({ id, accountId, mode }) => {
      if (mode === 'test') return;
      const kept = credit.keep(accountId, id, clock.now() + owedHoldMs);
      await said(kept, log, 'a hold ends before its charge');
    },
    holding: async (account, balance) => {
      const given = { now: clock.now(), freeLeft: freeLeft(balance, account.billingPlan) };
      const found = await credit.look(account.id, given);
      const shared = !balance.deposited && found.shared === undefined;
      if (!shared && found.exposure !== undefined) return found;
      await learn(account.id, { balance: false, shared, exposure: found.exposure === undefined });
      return credit.look(account.id, given);
    },
    totp: async ({ account, mode, holdId }) => {
      const nothing = free(account, mode);
      if (nothing) return nothing;
      const price = { priceMicros: totpPriceMicros, costMicros: 0 };
      return reserve(await asked(account, holdId, price));
    },
  };
};
