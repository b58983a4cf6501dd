// Receivers of webhooks for tests, and pointing accounts at them.

import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { signingSecrets } from '../../lib/accounts/webhook-secret.ts';
import type { Clock } from '../../lib/kernel/clock.ts';
import { ownerChange } from './acts.ts';
import type { Client } from './client.ts';
import { checkEvent } from './contract.ts';
import type { HandClock } from './hand-clock.ts';
import type { Customer, Stack } from './stack.ts';

export type Call = { headers: IncomingHttpHeaders; body: string; path: string };
export type Receiver = { calls: Call[]; url: string; close(): void };

/** An account that was pointed at a receiver: how it signs, as known last, and as it is now. */
type Owner = { secrets: string[]; read(): Promise<string[]>; clock: Clock | HandClock };

const owners = new Map<string, Owner[]>();

/** Runs `work` as if it were that time: the package knows no clock but the system's. */
const atTime = <T>(ms: number, work: () => T): T => {
  const { now } = Date;
  Date.now = () => ms;
  try {
    return work();
  } finally {
    Date.now = now;
  }
};

/** A clock may be put forward while a delivery is under way, which was signed by its setting before. */
const timesOf = (clock: Owner['clock']): number[] =>
  'settings' in clock ? clock.settings() : [clock.now()];

const isSignedBy = ({ secrets, clock }: Owner, { headers, body }: Call): boolean =>
  timesOf(clock).some((time) =>
    atTime(time, () =>
      secrets.some((secret) => {
        try {
          new Webhook(secret).verify(body, headers as Record<string, string>);
          return true;
        } catch {
          return false;
        }
      }),
    ),
  );

/**
 * Verifies a delivery as a customer would, with the package of Standard Webhooks and the secrets of the accounts that
 * were pointed at the receiver. @throws Error when none of them signed it
 */
export const verifyDelivery = async (url: string, call: Call): Promise<void> => {
  const known = owners.get(url);
  // Nobody was pointed there: the transport is tested by itself, with bodies that nobody signs.
  if (known === undefined) return;
  if (known.some((owner) => isSignedBy(owner, call))) return;
  // A secret may have been rotated meanwhile.
  for (const owner of known) owner.secrets = await owner.read();
  if (known.some((owner) => isSignedBy(owner, call))) return;
  throw new Error(`a delivery to ${url} is not signed by any account that was pointed there`);
};

type Answer = (response: ServerResponse, call: number, path: string) => void;

/**
 * A receiver of webhooks; `answer` may take its time. The signature of every delivery it gets is verified, and the event
 * is checked against the OpenAPI document; one that fails ends the process's test run.
 */
export const receive = async (answer: Answer = (response) => response.end()): Promise<Receiver> => {
  const calls: Call[] = [];
  let url = '';
  const take = async (call: Call, response: ServerResponse): Promise<void> => {
    await verifyDelivery(url, call);
    checkEvent(call.body);
    calls.push(call);
    answer(response, calls.length, call.path);
  };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      void take({ headers: request.headers, body, path: request.url ?? '' }, response);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  // A test that fails does not come to its `close`, and must not keep its file from ending.
  server.unref();
  const { port } = server.address() as AddressInfo;
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  url = `http://127.0.0.1:${port}/hook`;
  return { calls, url, close };
};

/** Points an account at a receiver, past the https rule that a receiver on loopback cannot keep. */
export const listenAt = async (
  { api }: Pick<Stack, 'api'>,
  { accountId }: Pick<Customer, 'accountId'>,
  url: string,
  clock: Clock = api.clock,
): Promise<void> => {
  const read = () => signingSecrets(api, accountId);
  const owner = { secrets: await read(), read, clock: api.clock };
  owners.set(url, [...(owners.get(url) ?? []), owner]);
  const told = await api.accounts.change(accountId, { webhookUrl: url }, ownerChange);
  // Tests of deliveries count what they make happen by themselves.
  for (const { id } of told ?? []) await api.news.strike(id);
  await api.webhooks.enable(accountId, clock.now());
};

export const typeOf = ({ body }: Call): string => (JSON.parse(body) as { type: string }).type;
export const idOf = ({ headers }: Call): string => String(headers['webhook-id']);

/** Asks for a webhook.test; answers the id of its event. */
export const sendTest = async (client: Client): Promise<string> =>
  String((await client.post('/v1/clients/webhooks/test', undefined)).data.event_id);

export type Item = Record<string, unknown> & { id: string; status: string; attempts: number };

export const deliveriesOf = async (
  customer: Customer,
  query = '',
  mode: 'live' | 'test' = 'live',
): Promise<Item[]> =>
  (await customer[mode].get(`/v1/clients/webhooks/deliveries?${query}`)).data.items as Item[];
