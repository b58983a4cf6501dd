// A receiver of Tessera's webhooks: verifies the signature over the raw body, takes every event once, answers at once.
//   WEBHOOK_SECRET=whsec_… PORT=3000 node examples/webhook-receiver/receiver.ts
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';

export type TesseraEvent = {
  /** Starts with evt_; the same in every attempt, and equal to the header webhook-id. */
  id: string;
  type: string;
  timestamp: string;
  mode: 'live' | 'test';
  data: Record<string, unknown>;
};

export type ReceiverOptions = {
  /** The secret of the account: whsec_… */
  secret: string;
  /**
   * Takes an event for good, say with an INSERT into a queue. Must be quick: the work comes after. When it
   * throws, the answer is 500 and Tessera sends the event again later.
   */
  accept(event: TesseraEvent): Promise<void> | void;
};

const mostBytes = 64 * 1024;
// Tessera tries for three days. In production `webhook_id` is a unique column beside the stored event, so that
// neither a restart nor a second process takes an event twice; here the newest ids are kept in memory.
const mostIds = 100_000;

/** The body as it came: parsed and serialised again, other bytes would be verified than were signed. */
const readBody = async (request: IncomingMessage): Promise<string | undefined> => {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes <= mostBytes) chunks.push(chunk);
  }
  return bytes > mostBytes ? undefined : Buffer.concat(chunks).toString();
};

/** Listens for webhooks; answers 204 for what was taken, now or before, and 400 for what Tessera did not sign. */
export const createReceiver = ({ secret, accept }: ReceiverOptions): RequestListener => {
  const webhook = new Webhook(secret);
  const taken = new Set<string>();

  const verify = (body: string, request: IncomingMessage): TesseraEvent | undefined => {
    try {
      // Throws when the signature is not ours or the timestamp is more than five minutes off.
      return webhook.verify(body, request.headers as Record<string, string>) as TesseraEvent;
    } catch {
      return undefined;
    }
  };

  const takeOnce = async (event: TesseraEvent): Promise<void> => {
    if (taken.has(event.id)) return;
    taken.add(event.id);
    try {
      await accept(event);
    } catch (error) {
      taken.delete(event.id);
      throw error;
    }
    const [oldest] = taken;
    if (taken.size > mostIds && oldest !== undefined) taken.delete(oldest);
  };

  const statusFor = async (request: IncomingMessage): Promise<number> => {
    if (request.method !== 'POST') return 405;
    const body = await readBody(request);
    if (body === undefined) return 413;
    const event = verify(body, request);
    if (event === undefined) return 400;
    await takeOnce(event);
    return 204;
  };

  return async (request, response) => {
    const status = await statusFor(request).catch(() => 500);
    response.writeHead(status).end();
  };
};

const main = (): void => {
  const { WEBHOOK_SECRET: secret, PORT: port = '3000' } = process.env;
  if (!secret)
    throw new Error('set WEBHOOK_SECRET to the secret of POST /v1/clients/webhook-secret/rotate');
  const accept = ({ type, data }: TesseraEvent) => console.log(type, data.message_id ?? '');
  const server = createServer(createReceiver({ secret, accept }));
  server.listen(Number(port), () => {
    console.log(`listening on port ${(server.address() as AddressInfo).port}`);
  });
};

if (import.meta.main) main();
