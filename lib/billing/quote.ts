// What a send or a TOTP verification costs and whether the account may make it: the one gate before anything is done.

import { isOwnAccount } from '../accounts/platform.ts';
import type { Account } from '../accounts/rules.ts';
import type { Clock } from '../kernel/clock.ts';
import { hour } from '../kernel/clock.ts';
import { type ErrorCode, type ErrorExtras, fail } from '../kernel/errors.ts';
import type { Log } from '../kernel/log.ts';
import { describeError } from '../kernel/redact.ts';
import type { Message, Mode, Plan } from '../messages/rules.ts';
import type { CreditStore, ReserveRequest } from './credit-store.ts';
import type { LedgerStore } from './ledger-store.ts';
import type { Prices } from './prices.ts';
import { dueHoldMs, holdMs, owedHoldMs, sharedPerFree, totpPriceMicros } from './rules.ts';

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
  trialVerifications: number;
  /** Countries the shared number serves; empty: all. */
  sharedCountries(): ReadonlySet<string>;
  sharedHourly: number;
};

export type Quotes = {
  /**
   * Plan and price of a send, frozen on its message, with the price held. Asked in this order, each error before the
   * next question: is there a price (INTL_PRICING_NOT_CONFIGURED), does it cover the cost (INTL_PRICE_BELOW_COST), does
   * the shared number serve the country (CENTRAL_WHATSAPP_UNSUPPORTED_REGION), is it paused
   * (CENTRAL_WHATSAPP_PAUSED); then, in one step of Redis, the trial (DEPOSIT_REQUIRED, FREE_TRIAL_PAUSED,
   * FREE_TRIAL_EXHAUSTED), the balance (DEPOSIT_REQUIRED, INSUFFICIENT_CREDITS), the cap (SPEND_CAP_EXCEEDED), the
   * shared number's allowance (CENTRAL_WHATSAPP_CONNECT_REQUIRED) and hour (CENTRAL_WHATSAPP_LIMIT).
   */
  send(request: QuoteRequest): Promise<Quote>;
  /** Nothing was sent: what `send` took is given back. */
  cancel(request: Omit<QuoteRequest, 'country'>, quote: Quote): Promise<void>;
  /** It was verified and could not be charged yet: what it holds stays until it is. */
  keep(message: Pick<Message, 'id' | 'accountId' | 'mode' | 'priceMicros'>): Promise<void>;
  /** Plan and price of a TOTP verification; held under that id, or only looked at without one. */
  totp(request: { account: Account; mode: Mode; holdId: string | undefined }): Promise<Quote>;
};

const pausedSeconds = 60;

const untilNextHour = (now: number) => {
  const at = (Math.floor(now / hour) + 1) * hour;
  return {
    retry_after_seconds: Math.max(Math.ceil((at - now) / 1000), 1),
    reset_at: new Date(at).toISOString(),
    window_seconds: hour / 1000,
  };
};

/** What an error of the credit step tells the caller beside its code. */
const extrasOf = (code: ErrorCode, now: number): ErrorExtras => {
  if (code === 'SPEND_CAP_EXCEEDED') {
    return {
      ...{ reason: 'spend_cap', layer: 'origin', dimension: 'account' },
      ...untilNextHour(now),
    };
  }
  if (code === 'CENTRAL_WHATSAPP_LIMIT') {
    return { reason: 'hourly', layer: 'origin', dimension: 'account', ...untilNextHour(now) };
  }
  return code === 'FREE_TRIAL_PAUSED' ? { retry_after_seconds: pausedSeconds } : {};
};

/** Sandbox and platform are never charged nor asked. */
const free = (account: Account, mode: Mode): Quote | undefined => {
  if (isOwnAccount(account.id)) return { plan: 'per_message', priceMicros: 0 };
  return mode === 'test' ? { plan: account.billingPlan, priceMicros: 0 } : undefined;
};

export const createQuotes = (deps: QuoteDeps): Quotes => {
  const { prices, credit, ledger, clock, log, sharedCountries, sharedHourly } = deps;
  const trialAllowance = sharedPerFree * deps.trialVerifications;

  const learn = async (accountId: string, shared: boolean): Promise<void> => {
    const balance = await ledger.balance(accountId);
    if (!balance) throw new Error('the account is gone');
    // Who has paid has no allowance to count against.
    const counted = shared && !balance.deposited;
    const most = trialAllowance + 1;
    const sharedTotal = counted ? await ledger.countMessages(accountId, most) : 0;
    await credit.note(accountId, balance, shared ? { sharedTotal } : {});
  };

  const reserve = async (request: ReserveRequest): Promise<Quote> => {
    let reserved = await credit.reserve(request);
    if (reserved.kind === 'miss') {
      await learn(request.accountId, request.shared !== undefined);
      reserved = await credit.reserve(request);
    }
    if (reserved.kind === 'miss') throw new Error('a balance that was just noted is not known');
    if (reserved.kind === 'refused') {
      throw fail(reserved.code, extrasOf(reserved.code, request.now));
    }
    return { plan: reserved.plan, priceMicros: reserved.priceMicros };
  };

  const requireShared = async (account: Account, country: string): Promise<void> => {
    const served = sharedCountries();
    if (served.size > 0 && !served.has(country)) {
      throw fail('CENTRAL_WHATSAPP_UNSUPPORTED_REGION');
    }
    if (account.sharedPaused || (await prices.isPaused('shared_number'))) {
      throw fail('CENTRAL_WHATSAPP_PAUSED', { retry_after_seconds: pausedSeconds });
    }
  };

  const asked = async (account: Account, priceMicros: number): Promise<ReserveRequest> => ({
    ...{ accountId: account.id, priceMicros, plan: account.billingPlan, now: clock.now() },
    ...{ capMicros: account.spendCapHourlyMicros, trialPaused: await prices.isPaused('trial') },
    ...{ holdId: undefined, holdForMs: dueHoldMs, shared: undefined },
  });

  return {
    send: async ({ account, mode, country, holdId, shared, waitsMs = 0 }) => {
      const nothing = free(account, mode);
      if (nothing) return nothing;
      const priceMicros = await prices.of(account.id, country);
      if (shared) await requireShared(account, country);
      return reserve({
        ...(await asked(account, priceMicros)),
        holdId,
        holdForMs: account.billingPlan === 'per_message' ? dueHoldMs : holdMs + waitsMs,
        shared: shared ? { trialAllowance, hourly: sharedHourly } : undefined,
      });
    },
    cancel: async ({ account, mode, holdId, shared }, { priceMicros }) => {
      if (free(account, mode)) return;
      try {
        await credit.release(account.id, { id: holdId, priceMicros }, shared);
      } catch (error) {
        log.warn({ reason: describeError(error) }, 'a hold is left to its end');
      }
    },
    keep: async ({ id, accountId, mode, priceMicros }) => {
      if (mode === 'test') return;
      try {
        await credit.keep(accountId, { id, priceMicros }, clock.now() + owedHoldMs);
      } catch (error) {
        log.warn({ reason: describeError(error) }, 'a hold ends before its charge');
      }
    },
    totp: async ({ account, mode, holdId }) =>
      free(account, mode) ?? reserve({ ...(await asked(account, totpPriceMicros)), holdId }),
  };
};
