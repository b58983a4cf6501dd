// Stripe Checkout of the simulators: sessions that somebody pays by the control API, and the signed news of it.
import { createHmac } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from './clock.ts';
import { readBody, readParameters, sendJson } from './http.ts';
import type { Stats } from './stats.ts';

export type StripeOptions = { secretKey: string; webhookSecret: string };

type Session = { id: string; account: string; checkout: string; cents: number; paid: boolean };

export type StripeSimulator = ReturnType<typeof createStripe>;

const sessionView = ({ id, account, checkout, cents, paid }: Session, url: string) => ({
  metadata: { tessera_checkout: checkout },
  ...{ id, object: 'checkout.session', mode: 'payment', currency: 'usd', amount_total: cents },
  ...{ client_reference_id: account, payment_status: paid ? 'paid' : 'unpaid' },
  payment_intent: paid ? id.replace('cs_', 'pi_') : null,
  ...{ status: paid ? 'complete' : 'open', url: `${url}/payments/${id}/pay` },
});

/** Creates the simulator; `apiUrl` answers where webhooks go. */
export const createStripe = (deps: {
  options: StripeOptions;
  clock: Clock;
  stats: Stats;
  apiUrl(): string;
}) => {
  const { options, clock, stats, apiUrl } = deps;
  const sessions = new Map<string, Session>();
  let serial = 0;

  const open = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await readBody(request);
    if (request.headers.authorization !== `Bearer ${options.secretKey}`) {
      stats.note('stripe', 'unauthorized');
      const error = { type: 'invalid_request_error', message: 'Invalid API Key provided' };
      return sendJson(response, 401, { error });
    }
    const input = readParameters(request, body, new URLSearchParams());
    serial += 1;
    const session: Session = {
      id: `cs_test_sim${serial}`,
      account: String(input.client_reference_id),
      checkout: String(input['metadata[tessera_checkout]']),
      cents: Number(input['line_items[0][price_data][unit_amount]']),
      paid: false,
    };
    sessions.set(session.id, session);
    stats.note('stripe', 'session');
    sendJson(response, 200, sessionView(session, `http://${request.headers.host}`));
  };

  const sign = (text: string): string => {
    const at = Math.floor(clock.now() / 1000);
    const mac = createHmac('sha256', options.webhookSecret).update(`${at}.${text}`).digest('hex');
    return `t=${at},v1=${mac}`;
  };

  return {
    open,
    /** Somebody pays; the webhook is told. Answers the status of its answer; 0 when there is no such checkout. */
    pay: async (id: string): Promise<number> => {
      const session = sessions.get(id);
      if (!session) return 0;
      session.paid = true;
      const object = sessionView(session, '');
      const event = { id: `evt_${id}`, object: 'event', type: 'checkout.session.completed' };
      const text = JSON.stringify({ ...event, data: { object } });
      const answer = await fetch(`${apiUrl()}/v1/inbound/payments`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'stripe-signature': sign(text) },
        body: text,
      });
      return answer.status;
    },
    reset: (): void => sessions.clear(),
  };
};
