// Payments by Stripe Checkout: a page to pay on, and the signed news that somebody did.
import type Stripe from 'stripe';

export type Checkout = { id: string; url: string };

/** Money that arrived: Stripe's name of the checkout, whom it is for, micro-USD. */
export type Payment = { id: string; accountId: string; amountMicros: number };

export type Payments = {
  /** @throws PaymentsUnavailable */
  createCheckout(given: { accountId: string; amountCents: number; key: string }): Promise<Checkout>;
  /**
   * The payment in a webhook's body; undefined for news that is none.
   * @throws UnsignedPayment when the signature is not ours
   */
  readPayment(body: Buffer, signature: string): Promise<Payment | undefined>;
};

/** Stripe cannot be asked, or refused our request; the cause says why. */
export class PaymentsUnavailable extends Error {}
export class UnsignedPayment extends Error {}

const microsPerCent = 10_000;
const timeoutMs = 10_000;
const paidTypes = new Set([
  'checkout.session.completed',
  'checkout.session.async_payment_succeeded',
]);

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

const paymentIn = (event: Stripe.Event): Payment | undefined => {
  if (!paidTypes.has(event.type)) return undefined;
  const session = event.data.object as Stripe.Checkout.Session;
  const { id, client_reference_id: accountId, amount_total: cents, currency } = session;
  if (session.payment_status !== 'paid' || !accountId || !cents || currency !== 'usd') {
    return undefined;
  }
  return { id, accountId, amountMicros: cents * microsPerCent };
};

export const createPayments = (options: PaymentOptions): Payments => {
  let client: Promise<Stripe> | undefined;
  const stripe = (): Promise<Stripe> => {
    client ??= clientOf(options);
    return client;
  };

  return {
    createCheckout: async ({ accountId, amountCents, key }) => {
      try {
        const { checkout } = await stripe();
        const session = await checkout.sessions.create(
          {
            mode: 'payment',
            client_reference_id: accountId,
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
          { idempotencyKey: key },
        );
        if (!session.url) throw new Error('a checkout without an address');
        return { id: session.id, url: session.url };
      } catch (error) {
        throw new PaymentsUnavailable('no checkout', { cause: error });
      }
    },
    readPayment: async (body, signature) => {
      const { webhooks } = await stripe();
      let event: Stripe.Event;
      try {
        event = webhooks.constructEvent(body, signature, options.webhookSecret);
      } catch (error) {
        throw new UnsignedPayment('not signed by Stripe', { cause: error });
      }
      return paymentIn(event);
    },
  };
};
