// Receivers of webhooks for tests, and pointing accounts at them.
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Clock } from '../../lib/kernel/clock.ts';
import type { Client } from './client.ts';
import { checkEvent } from './contract.ts';
import type { Customer, Stack } from './stack.ts';

export type Call = { headers: IncomingHttpHeaders; body: string; path: string };
export type Receiver = { calls: Call[]; url: string; close(): void };

type Answer = (response: ServerResponse, call: number, path: string) => void;

/**
 * A receiver of webhooks; `answer` may take its time. Every event it gets is checked against the OpenAPI document, and
 * one that differs ends the process's test run.
 */
export const receive = async (answer: Answer = (response) => response.end()): Promise<Receiver> => {
  const calls: Call[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const path = request.url ?? '';
      const body = Buffer.concat(chunks).toString();
      checkEvent(body);
      calls.push({ headers: request.headers, body, path });
      answer(response, calls.length, path);
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
  return { calls, url: `http://127.0.0.1:${port}/hook`, close };
};

/** Points an account at a receiver, past the https rule that a receiver on loopback cannot keep. */
export const listenAt = async (
  { api }: Pick<Stack, 'api'>,
  { accountId }: Pick<Customer, 'accountId'>,
  url: string,
  clock: Clock = api.clock,
): Promise<void> => {
  await api.accounts.change(accountId, { webhookUrl: url });
  await api.webhooks.enable(accountId, clock.now());
};

export const typeOf = ({ body }: Call): string => (JSON.parse(body) as { type: string }).type;
export const idOf = ({ headers }: Call): string => String(headers['webhook-id']);

/** Asks for a webhook.test; answers the id of its event. */
export const sendTest = async (client: Client): Promise<string> =>
  String((await client.post('/v1/clients/webhooks/test', undefined)).data.event_id);

export type Item = Record<string, unknown> & { id: string; status: string; attempts: number };

export const deliveriesOf = async ({ live }: Customer, query = ''): Promise<Item[]> =>
  (await live.get(`/v1/clients/webhooks/deliveries?${query}`)).data.items as Item[];
