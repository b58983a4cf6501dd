// Values that an operation takes only when an earlier answer gave them: ids, the code of a message, the own password.
import type { Client } from './client.ts';
import { listenAt } from './receivers.ts';
import type { Customer, Stack } from './stack.ts';

/** The account that calls, and where its events go. */
export type Calling = { stack: Stack; customer: Customer; receiver: string };

type Give = (calling: Calling) => Promise<unknown>;

const waitMs = 10_000;
const pauseMs = 20;

type Item = Record<string, unknown>;

const itemsOf = async (client: Client, path: string): Promise<Item[]> => {
  const { data, text } = await client.get(path);
  if (!Array.isArray(data.items)) throw new Error(`${path}: ${text}`);
  return data.items as Item[];
};

const message: Give = async ({ stack, customer }) => {
  const { data, text } = await customer.live.send(stack.phone().number);
  if (data.message_id === undefined) throw new Error(text);
  return data.message_id;
};

const key: Give = async ({ customer: { session } }) => {
  const { data, text } = await session.post('/v1/clients/keys', { name: 'Of a test' });
  if (data.id === undefined) throw new Error(text);
  return data.id;
};

const session: Give = async ({ stack, customer }) => {
  await stack.sessionOf(customer.accountId);
  const open = await itemsOf(customer.session, '/v1/clients/security/sessions');
  return open.find(({ current }) => current === false)?.id;
};

const wishes = {
  requested_sustained_per_minute: 1_000,
  requested_burst_per_10_seconds: 330,
  expected_sustained_per_minute: 600,
  expected_peak_per_minute: 900,
  business_justification: 'Our autumn campaign brings about 600 sign-ups a minute.',
};

/** The one that is pending; one is made when none is. */
const capacityRequest: Give = async ({ customer }) => {
  const path = '/v1/clients/capacity-requests';
  const made = await customer.session.post(path, wishes);
  if (made.status !== 201 && made.error.code !== 'CAPACITY_REQUEST_PENDING') {
    throw new Error(made.text);
  }
  const items = await itemsOf(customer.session, path);
  return items.find(({ status }) => status === 'pending')?.id;
};

const delivery: Give = async ({ stack, customer, receiver }) => {
  await listenAt(stack, customer, receiver);
  await customer.session.post('/v1/clients/webhooks/test', undefined);
  for (const until = Date.now() + waitMs; Date.now() < until; ) {
    const [first] = await itemsOf(customer.session, '/v1/clients/webhooks/deliveries');
    if (first !== undefined) return first.id;
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  throw new Error('no delivery of a test');
};

const deliveredPhone = '+14155550123';
const deliveredCode = '493027';

/** The code that the phone of the examples has from this account. */
const code: Give = async ({ customer }) => {
  const { status, text } = await customer.live.deliver(deliveredPhone, deliveredCode);
  if (status !== 200 && status !== 429) throw new Error(text);
  return deliveredCode;
};

const password: Give = async ({ customer }) => customer.password;
const email: Give = async ({ customer }) => customer.email;

/** By operation and field. */
export const earlierAnswers: Record<string, Record<string, Give>> = {
  'POST /v1/otp/verify': { phone: async () => deliveredPhone, code },
  'GET /v1/otp/status/{message_id}': { message_id: message },
  'GET /v1/clients/otps/{message_id}/timeline': { message_id: message },
  'POST /v1/clients/keys/rotate': { id: key },
  'DELETE /v1/clients/keys/{id}': { id: key },
  'GET /v1/clients/capacity-requests/{id}': { id: capacityRequest },
  'DELETE /v1/clients/capacity-requests/{id}': { id: capacityRequest },
  'GET /v1/clients/webhooks/deliveries/{id}': { id: delivery },
  'POST /v1/clients/webhooks/deliveries/{id}/redeliver': { id: delivery },
  'DELETE /v1/clients/security/sessions/{id}': { id: session },
  'POST /v1/clients/login': { email, password },
  'POST /v1/clients/password': { current_password: password },
  'POST /v1/clients/security/reauth': { password },
};
