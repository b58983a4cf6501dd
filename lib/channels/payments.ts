// Payments by Stripe Checkout: a page to pay on, and the signed news that somebody did or had it back.
import type Stripe from 'stripe';

export type Checkout = { id: string; url: string };

/** Money that arrived: Stripe's name of the checkout and of the transfer behind it, micro-USD. */
export type Payment = {
  kind: 'payment';
  id: string;
  intent: string | null;
  /**
   * Our id of the checkout, from the metadata that only a call with our secret key can set; null for a payment link or
   * an invoice.
   */
  checkoutId: string | null;
  /** Whom it names. The payer can write this into the address of a payment link: people read it, nothing is booked by it. */
  reference: string;
  amountMicros: number;
};

/** Money that went back: by a refund or a dispute, or (negative) returned by a dispute that was won. */
export type Reversal = {
  kind: 'reversal';
  /** Names it once and for all. */
  id: string;
  intent: string;
  amountMicros: number;
  note: string;
};

/** A refund that came to nothing: what it took back, if it was told to have taken any, is there again. */
export type Undone = { kind: 'undone'; id: string; intent: string };

/** About money, and nothing that can be booked: people have to look. */
export type Unusable = { kind: 'unusable'; id: string; reason: string };

export type PaymentNews = Payment | Reversal | Undone | Unusable;

export type Payments = {
  /** @throws PaymentsUnavailable */
  createCheckout(given: {
    accountId: string;
    amountCents: number;
    /** Our id of the checkout; asked again with the same one, Stripe answers the same page. */
    checkoutId: string;
  }): Promise<Checkout>;
  /**
   * What a webhook's body tells of money; undefined for news of something else.
   * @throws UnsignedPayment when the signature is not ours
   */
  readNews(body: Buffer, signature: string): Promise<PaymentNews | undefined>;
};

/** Stripe cannot be asked, or refused our request; the cause says why. */
export class PaymentsUnavailable extends Error {}
export class UnsignedPayment extends Error {}

const microsPerCent = 10_000;
const timeoutMs = 10_000;
export type PaymentOptions = {
  secretKey: string;
  webhookSecret: string;
  baseUrl: string;
  /** Where Stripe sends people back to. */
  returnUrl: string;
};

const clientOf = async ({ secretKey, baseUrl }: PaymentOptions): Promise<Stripe> => {
  // The package is large and deposits are rare: it is loaded by the first of them.
  const { default: StripeClient } = await import('stripe');
  const { hostname, port, protocol } = new URL(baseUrl);
  const scheme = protocol === 'http:' ? 'http' : 'https';
  return new StripeClient(secretKey, {
    ...{ host: hostname, port: port || (scheme === 'http' ? 80 : 443), protocol: scheme },
    ...{ timeout: timeoutMs, maxNetworkRetries: 1, telemetry: false },
  });
};

const unusable = (id: string, currency: string | null): Unusable => ({
  ...{ kind: 'unusable', id, reason: `in ${currency ?? 'no currency'}, not in USD` },
});

const idOf = (given: string | { id: string } | null): string | null =>
  typeof given === 'string' ? given : (given?.id ?? null);

const checkoutMember = 'tessera_checkout';

const paymentIn = (session: Stripe.Checkout.Session): PaymentNews | undefined => {
  const { id, client_reference_id: reference, amount_total: cents, currency, metadata } = session;
  if (session.payment_status !== 'paid' || !cents) return undefined;
  if (currency !== 'usd') return unusable(id, currency);
  const intent = idOf(session.payment_intent ?? null);
  const amountMicros = cents * microsPerCent;
  const checkoutId = metadata?.[checkoutMember] ?? null;
  return { kind: 'payment', id, intent, checkoutId, reference: reference ?? '', amountMicros };
};

type Taken = Pick<Stripe.Refund, 'id' | 'amount' | 'currency' | 'payment_intent'>;

const reversalIn = (taken: Taken, note: string, name = taken.id, sign = 1): PaymentNews => {
  const intent = idOf(taken.payment_intent);
  if (taken.currency !== 'usd') return unusable(name, taken.currency);
  if (intent === null) return { kind: 'unusable', id: name, reason: 'of no payment intent' };
  const amountMicros = sign * taken.amount * microsPerCent;
  return { kind: 'reversal', id: name, intent, amountMicros, note };
};

const refundIn = (refund: Stripe.Refund): PaymentNews | undefined => {
  const { id, status } = refund;
  if (status === 'succeeded') return reversalIn(refund, 'Payment refunded');
  const intent = idOf(refund.payment_intent);
  // It may fail after it succeeded (docs.stripe.com/refunds): the bank sends the money back.
  if ((status !== 'failed' && status !== 'canceled') || intent === null) return undefined;
  return { kind: 'undone', id, intent };
};

/** What the types that concern money tell; a payment and a refund are told by several. */
const newsIn = (event: Stripe.Event): PaymentNews | undefined => {
  switch (event.type) {
    case 'checkout.session.completed':
    case 'checkout.session.async_payment_succeeded':
      return paymentIn(event.data.object);
    case 'refund.created':
    case 'refund.updated':
    case 'refund.failed':
    // What API versions before 2024-10-28 call it.
    case 'charge.refund.updated':
      return refundIn(event.data.object);
    case 'charge.dispute.funds_withdrawn':
      return reversalIn(event.data.object, 'Payment disputed');
    case 'charge.dispute.funds_reinstated': {
      const { object } = event.data;
      return reversalIn(object, 'Dispute won', `${object.id}:reinstated`, -1);
    }
    default:
      return undefined;
  }
};

export const createPayments = (options: PaymentOptions): Payments => {
  let client: Promise<Stripe> | undefined;
  const stripe = (): Promise<Stripe> => {
    client ??= clientOf(options);
    return client;
  };

  return {
    createCheckout: async ({ accountId, amountCents, checkoutId }) => {
      try {
        const { checkout } = await stripe();
        const session = await checkout.sessions.create(
          {
            mode: 'payment',
            client_reference_id: accountId,
            metadata: { [checkoutMember]: checkoutId },
            success_url: options.returnUrl,
            cancel_url: options.returnUrl,
            line_items: [
              {
                quantity: 1,
                price_data: {
                  currency: 'usd',
                  unit_amount: amountCents,
                  product_data: { name: 'Tessera credit' },
                },
              },
            ],
          },
          { idempotencyKey: checkoutId },
        );
        if (!session.url) throw new Error('a checkout without an address');
        return { id: session.id, url: session.url };
      } catch (error) {
        throw new PaymentsUnavailable('no checkout', { cause: error });
      }
    },
    readNews: async (body, signature) => {
      const { webhooks } = await stripe();
      let event: Stripe.Event;
      try {
        event = webhooks.constructEvent(body, signature, options.webhookSecret);
      } catch (error) {
        throw new UnsignedPayment('not signed by Stripe', { cause: error });
      }
      return newsIn(event);
    },
  };
};
