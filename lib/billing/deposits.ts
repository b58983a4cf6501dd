// Deposits: a page to pay on, and what arrives or is taken back, booked once.
import type { AccountStore } from '../accounts/store.ts';
import {
  type Payment,
  type PaymentNews,
  type Payments,
  PaymentsUnavailable,
  type Reversal,
  type Undone,
  UnsignedPayment,
} from '../channels/payments.ts';
import type { Clock } from '../kernel/clock.ts';
import { fail } from '../kernel/errors.ts';
import { newId } from '../kernel/ids.ts';
import type { Log } from '../kernel/log.ts';
import type { CheckoutStore } from './checkout-store.ts';
import { adjust, deposit } from './credit.ts';
import type { PaymentStore } from './payment-store.ts';
import type { Poster } from './post.ts';

/** What one deposit may be, USD. */
export const depositBounds = { min: 5, max: 10_000 } as const;

const retrySeconds = 30;
const microsPerCent = 10_000;

export type DepositDeps = {
  payments: Payments | undefined;
  accounts: Pick<AccountStore, 'find'>;
  payers: PaymentStore;
  checkouts: CheckoutStore;
  poster: Poster;
  clock: Clock;
  log: Log;
};

/**
 * POST /v1/clients/deposits: opens a checkout; the money is booked when Stripe says that it came.
 * @throws SERVICE_UNAVAILABLE when payments are not set up here, or Stripe does not answer
 */
export const openDeposit = async (
  { payments, checkouts, clock }: Pick<DepositDeps, 'payments' | 'checkouts' | 'clock'>,
  { accountId, amount }: { accountId: string; amount: number },
) => {
  const wait = { retry_after_seconds: retrySeconds };
  if (!payments) {
    const message = 'Payments are not set up here. Ask the operator of the service for credit.';
    throw fail('SERVICE_UNAVAILABLE', wait, { message });
  }
  try {
    const amountCents = Math.round(amount * 100);
    const checkoutId = newId();
    const amountMicros = amountCents * microsPerCent;
    // Written before the customer can pay: a process that dies in between loses no payment.
    await checkouts.open({ id: checkoutId, accountId, amountMicros, at: clock.now() });
    return await payments.createCheckout({ accountId, amountCents, checkoutId });
  } catch (error) {
    if (!(error instanceof PaymentsUnavailable)) throw error;
    throw fail('SERVICE_UNAVAILABLE', wait, { cause: error.cause });
  }
};

/** What an inbound call of the payment provider was. */
export type Inbound = 'booked' | 'unclaimed' | 'unusable' | 'ignored' | 'unsigned';

const idForm = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

type Booking = Pick<DepositDeps, 'payers' | 'poster' | 'clock'>;

/** Books what was taken back of a payment; answers how much there was. Whichever of the two comes last finds both. */
const bookReversals = async (deps: Booking, intent: string): Promise<number> => {
  const found = await deps.payers.reversalsOf(intent);
  for (const { accountId, name, amountMicros, note } of found) {
    await adjust(deps, { accountId, amountMicros: -amountMicros, name, note });
  }
  return found.length;
};

const takeBack = async (deps: DepositDeps, { id: name, ...reversal }: Reversal) => {
  const { intent, amountMicros, note } = reversal;
  await deps.payers.keepReversal({ name, intent, amountMicros, note, at: deps.clock.now() });
  const fields = { reversal: name, amount_micros: amountMicros };
  if ((await bookReversals(deps, intent)) > 0) {
    deps.log.warn(fields, 'a payment was taken back');
    return 'booked';
  }
  // Its payment may still come, or it is of another shop with the same provider.
  deps.log.warn(fields, 'taken back from a payment that is not known');
  return 'unclaimed';
};

/** What a refund took is given back when it failed; one that was not told of yet never takes any. */
const giveBack = async (deps: DepositDeps, { id, intent }: Undone): Promise<Inbound> => {
  const at = deps.clock.now();
  const note = 'Refund failed';
  const taken = await deps.payers.endReversal({ name: id, intent, note, at });
  if (taken <= 0) return 'ignored';
  const name = `${id}:failed`;
  await deps.payers.keepReversal({ name, intent, amountMicros: -taken, note, at });
  const booked = await bookReversals(deps, intent);
  deps.log.warn({ reversal: id, amount_micros: taken }, 'a refund failed: the money is back');
  return booked > 0 ? 'booked' : 'unclaimed';
};

/** The account whose checkout was paid; null for a payment of anything that this service did not open. */
const ownerOf = async (deps: DepositDeps, { id, checkoutId }: Payment): Promise<string | null> => {
  if (checkoutId === null || !idForm.test(checkoutId)) return null;
  const accountId = await deps.checkouts.accountOf(checkoutId, id);
  return (accountId && (await deps.accounts.find(accountId))?.id) ?? null;
};

/** Keeps the payment and books it; any other money is kept, and the books show it until it is claimed. */
const book = async (deps: DepositDeps, payment: Payment): Promise<Inbound> => {
  const { id: name, reference, amountMicros, intent } = payment;
  const accountId = await ownerOf(deps, payment);
  const at = deps.clock.now();
  await deps.payers.keep({ name, account: reference, accountId, amountMicros, intent, at });
  if (accountId === null) {
    const fields = { payment: name, amount_micros: amountMicros };
    deps.log.error(fields, 'a payment that no checkout of ours explains');
    return 'unclaimed';
  }
  await deposit(deps, { name, accountId, amountMicros, note: null });
  if (intent !== null) await bookReversals(deps, intent);
  deps.log.info({ account_id: accountId, amount_micros: amountMicros }, 'deposit booked');
  return 'booked';
};

const takeNews = async (deps: DepositDeps, news: PaymentNews | undefined): Promise<Inbound> => {
  switch (news?.kind) {
    case 'payment':
      return book(deps, news);
    case 'reversal':
      return takeBack(deps, news);
    case 'undone':
      return giveBack(deps, news);
    case 'unusable':
      deps.log.error({ payment: news.id, reason: news.reason }, 'money that cannot be booked');
      return 'unusable';
    default:
      return 'ignored';
  }
};

/**
 * POST /v1/inbound/payments: books a payment, or what was taken back of one, once however often it is told. Resolves after the commit, so that
 * Stripe repeats what was not booked.
 */
export const takePayment = async (
  deps: DepositDeps,
  body: Buffer,
  signature: string,
): Promise<Inbound> => {
  if (!deps.payments) return 'unsigned';
  try {
    return await takeNews(deps, await deps.payments.readNews(body, signature));
  } catch (error) {
    if (error instanceof UnsignedPayment) return 'unsigned';
    throw error;
  }
};

/**
 * Books a payment that came for no account we know to the one it was meant for; asked again, it is booked once.
 * @throws NOT_FOUND when there is no such account, or no such payment for nobody
 */
export const claimPayment = async (
  deps: Booking & Pick<DepositDeps, 'accounts'>,
  { name, accountId }: { name: string; accountId: string },
): Promise<void> => {
  if (!(await deps.accounts.find(accountId))) throw fail('NOT_FOUND');
  const payment = await deps.payers.assign(name, accountId);
  if (payment === undefined) throw fail('NOT_FOUND');
  const { amountMicros, intent } = payment;
  await deposit(deps, { name, accountId, amountMicros, note: null });
  if (intent !== null) await bookReversals(deps, intent);
};
