// Deposits: a page to pay on, and what arrives, booked once.
import type { AccountStore } from '../accounts/store.ts';
import {
  type Payment,
  type Payments,
  PaymentsUnavailable,
  UnsignedPayment,
} from '../channels/payments.ts';
import type { Clock } from '../kernel/clock.ts';
import { fail } from '../kernel/errors.ts';
import { newId } from '../kernel/ids.ts';
import type { Log } from '../kernel/log.ts';
import { deposit } from './credit.ts';
import type { PaymentStore } from './payment-store.ts';
import type { Poster } from './post.ts';

/** What one deposit may be, USD. */
export const depositBounds = { min: 5, max: 10_000 } as const;

const retrySeconds = 30;

export type DepositDeps = {
  payments: Payments | undefined;
  accounts: Pick<AccountStore, 'find'>;
  payers: PaymentStore;
  poster: Poster;
  clock: Clock;
  log: Log;
};

/**
 * POST /v1/clients/deposits: opens a checkout; the money is booked when Stripe says that it came.
 * @throws SERVICE_UNAVAILABLE when payments are not set up here, or Stripe does not answer
 */
export const openDeposit = async (
  { payments }: Pick<DepositDeps, 'payments'>,
  { accountId, amount }: { accountId: string; amount: number },
) => {
  const wait = { retry_after_seconds: retrySeconds };
  if (!payments) {
    const message = 'Payments are not set up here. Ask the operator of the service for credit.';
    throw fail('SERVICE_UNAVAILABLE', wait, { message });
  }
  try {
    const amountCents = Math.round(amount * 100);
    return await payments.createCheckout({ accountId, amountCents, key: newId() });
  } catch (error) {
    if (!(error instanceof PaymentsUnavailable)) throw error;
    throw fail('SERVICE_UNAVAILABLE', wait, { cause: error.cause });
  }
};

/** What an inbound call of the payment provider was. */
export type Inbound = 'booked' | 'unclaimed' | 'ignored' | 'unsigned';

const accountName = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Keeps the payment and books it; money for nobody we know is kept, and the books show it until it is claimed. */
const book = async (deps: DepositDeps, { id: name, ...payment }: Payment): Promise<Inbound> => {
  const { accountId: account, amountMicros } = payment;
  const owner = accountName.test(account) ? await deps.accounts.find(account) : undefined;
  const accountId = owner?.id ?? null;
  await deps.payers.keep({ name, account, accountId, amountMicros, at: deps.clock.now() });
  if (accountId === null) {
    deps.log.error({ payment: name, amount_micros: amountMicros }, 'a payment for no account');
    return 'unclaimed';
  }
  await deposit(deps, { name, accountId, amountMicros, note: null });
  deps.log.info({ account_id: accountId, amount_micros: amountMicros }, 'deposit booked');
  return 'booked';
};

/**
 * POST /v1/inbound/payments: books a payment, once however often it is told. Resolves after the commit, so that
 * Stripe repeats what was not booked.
 */
export const takePayment = async (
  deps: DepositDeps,
  body: Buffer,
  signature: string,
): Promise<Inbound> => {
  if (!deps.payments) return 'unsigned';
  try {
    const payment = await deps.payments.readPayment(body, signature);
    return payment ? await book(deps, payment) : 'ignored';
  } catch (error) {
    if (error instanceof UnsignedPayment) return 'unsigned';
    throw error;
  }
};

/** Books a payment that came for no account we know to the one it was meant for. @throws NOT_FOUND */
export const claimPayment = async (
  deps: Pick<DepositDeps, 'payers' | 'poster' | 'clock'>,
  { name, accountId }: { name: string; accountId: string },
): Promise<void> => {
  const amountMicros = await deps.payers.assign(name, accountId);
  if (amountMicros === undefined) throw fail('NOT_FOUND');
  await deposit(deps, { name, accountId, amountMicros, note: null });
};
