// What a send costs and whether the account may make it: the one gate that prices and credit stand behind.
import type { Account } from '../accounts/rules.ts';
import type { Mode, Plan } from '../messages/rules.ts';

export type Quote = { plan: Plan; priceMicros: number };

export type QuoteRequest = { account: Account; mode: Mode; country: string };

/** Throws one of the 402, INTL_ and CENTRAL_ errors of the catalogue when the send may not be made. */
export type QuoteSend = (request: QuoteRequest) => Promise<Quote>;

/** Until the ledger exists every account may send, on its plan, at no price. */
export const createQuoteSend = (): QuoteSend => (request) =>
  Promise.resolve({ plan: request.account.billingPlan, priceMicros: 0 });
