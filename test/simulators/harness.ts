// What the tests of the simulators share: a stand-in for the product's webhook doors, and calls as the product makes them.
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ExecutionContext } from 'ava';
import { createSimulators, type SimulatorOptions, type Simulators } from './server.ts';

export const whatsapp = {
  appSecret: 'app-secret',
  accessToken: 'access-token',
  phoneNumberId: '106540352242922',
  wabaId: '102290129340398',
  verifyToken: 'verify-token',
  templateName: 'otp_code',
  templateLanguage: 'en_US',
};
export const telegram = {
  botToken: '700000001:bot-token',
  botUsername: 'tessera_test_bot',
  webhookSecret: 'webhook-secret',
};

export type Received = { path: string; headers: IncomingHttpHeaders; raw: Buffer; status: number };

/** Records what is POSTed to it; `answer` decides the status (default 200). */
export const createReceiver = async () => {
  const received: Received[] = [];
  const waiting = new Set<() => void>();
  const receiver = { answer: (_call: Received): number | Promise<number> => 200 };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', async () => {
      const raw = Buffer.concat(chunks);
      const call = { path: request.url ?? '', headers: request.headers, raw, status: 0 };
      call.status = await receiver.answer(call);
      received.push(call);
      response
        .writeHead(call.status)
        .end(String(new URLSearchParams(call.path.split('?')[1]).get('hub.challenge') ?? ''));
      for (const check of waiting) check();
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return Object.assign(receiver, {
    received,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Resolves when `found` is true of what was received so far. */
    until: (found: (received: Received[]) => boolean): Promise<void> =>
      new Promise((resolve) => {
        const check = () => {
          if (!found(received)) return;
          waiting.delete(check);
          resolve();
        };
        waiting.add(check);
        check();
      }),
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  });
};

export type Receiver = Awaited<ReturnType<typeof createReceiver>>;

/** Simulators on a free port with a receiver; both end with the test. */
export const startPair = async (t: ExecutionContext, options: Partial<SimulatorOptions> = {}) => {
  const receiver = await createReceiver();
  const sim = await createSimulators({
    ...{ port: 0, apiUrl: receiver.url, whatsapp, telegram, statusBatchMs: 5 },
    ...options,
  });
  t.teardown(async () => {
    await sim.close();
    receiver.close();
  });
  return { sim, receiver };
};

// biome-ignore lint/suspicious/noExplicitAny: answers of many shapes, looked into by assertions alone.
export type Answer = { status: number; body: any; headers: Headers };

/** One call with a JSON body; the answer's body is parsed when it is JSON. */
export const call = async (
  url: string,
  method = 'GET',
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> => {
  const answer = await fetch(url, {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await answer.text();
  const json = answer.headers.get('content-type')?.includes('json');
  return { status: answer.status, body: json ? JSON.parse(text) : text, headers: answer.headers };
};

export const bearer = (token = whatsapp.accessToken) => ({ authorization: `Bearer ${token}` });

/** The body the product sends: the code twice. */
export const templateMessage = (to: string, code = '493027', echo = 'otp_1') => ({
  messaging_product: 'whatsapp',
  recipient_type: 'individual',
  to,
  type: 'template',
  biz_opaque_callback_data: echo,
  template: {
    name: whatsapp.templateName,
    language: { code: whatsapp.templateLanguage },
    components: [
      { type: 'body', parameters: [{ type: 'text', text: code }] },
      { type: 'button', sub_type: 'url', index: '0', parameters: [{ type: 'text', text: code }] },
    ],
  },
});

/** A Graph call with the shared number's token. */
export const graph = (sim: Simulators, path: string, method = 'GET', body?: unknown) =>
  call(`${sim.url}/graph/v25.0/${path}`, method, body, bearer());

/** Sends a code as the product does. */
export const sendCode = (sim: Simulators, to: string, code?: string, echo?: string) =>
  graph(sim, `${whatsapp.phoneNumberId}/messages`, 'POST', templateMessage(to, code, echo));

/** A Bot API call with the bot's token. */
export const bot = (sim: Simulators, method: string, body: unknown = {}) =>
  call(`${sim.url}/telegram/bot${telegram.botToken}/${method}`, 'POST', body);

// biome-ignore lint/suspicious/noExplicitAny: wire bodies, looked into by assertions alone.
type Wire = any;

const accepted = (received: Received[], path: string): Wire[] =>
  received
    .filter((one) => one.path === path && one.status < 300)
    .map(({ raw }) => JSON.parse(raw.toString()));

/** Every status the receiver accepted, in order of arrival. */
export const statusesOf = (received: Received[]): Wire[] =>
  accepted(received, '/v1/inbound/whatsapp')
    .flatMap(({ entry }) => entry)
    .flatMap(({ changes }) => changes)
    .flatMap(({ value }) => value.statuses ?? []);

/** Every change of a field the receiver accepted. */
export const fieldsOf = (received: Received[], field: string): Wire[] =>
  accepted(received, '/v1/inbound/whatsapp')
    .flatMap(({ entry }) => entry)
    .flatMap(({ changes }) => changes)
    .filter((change) => change.field === field)
    .map(({ value }) => value);

/** Every Telegram update the receiver accepted. */
export const updatesOf = (received: Received[]): Wire[] =>
  accepted(received, '/v1/inbound/telegram');
