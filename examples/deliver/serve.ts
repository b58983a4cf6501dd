// What the recipes' HTTP handlers have in common: they run on node:http, know their caller and write down refusals.
import { createHash, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createDeliver, type Deliver, type Refusal, type Remedy } from './deliver.ts';

/** A handler as Deno, Bun, Workers and most frameworks have them. */
export type Handler = (request: Request) => Promise<Response>;

const mostBytes = 64 * 1024;

/** The whole body; undefined when it is larger than any identity server's: whoever sends it is not known yet. */
const bodyOf = async (incoming: IncomingMessage): Promise<Buffer | undefined> => {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes <= mostBytes) chunks.push(chunk);
  }
  return bytes > mostBytes ? undefined : Buffer.concat(chunks);
};

/** Lets `handle` answer requests of node:http; what it throws becomes a 500 without words, a huge body a 413. */
export const toListener =
  (handle: Handler): RequestListener =>
  async (incoming, outgoing) => {
    try {
      const headers = new Headers();
      for (const [name, value] of Object.entries(incoming.headers)) headers.set(name, `${value}`);
      const { method = 'GET' } = incoming;
      const body = method === 'GET' || method === 'HEAD' ? null : await bodyOf(incoming);
      if (body === undefined) {
        outgoing.writeHead(413).end();
        return;
      }
      const url = new URL(incoming.url ?? '/', 'http://localhost');
      const answer = await handle(new Request(url, { method, headers, body }));
      outgoing.statusCode = answer.status;
      outgoing.setHeaders(answer.headers);
      outgoing.end(Buffer.from(await answer.arrayBuffer()));
    } catch {
      outgoing.writeHead(500).end();
    }
  };

/** Serves `handle` on PORT of the environment and says so. */
export const serve = (handle: Handler): void => {
  const server = createServer(toListener(handle));
  server.listen(Number(process.env.PORT ?? '3000'), () => {
    console.log(`listening on port ${(server.address() as AddressInfo).port}`);
  });
};

/** The settings of that name; throws when one is missing. */
export const settings = <Name extends string>(...names: Name[]): Record<Name, string> =>
  Object.fromEntries(
    names.map((name) => {
      const value = process.env[name];
      if (!value) throw new Error(`set ${name}`);
      return [name, value];
    }),
  ) as Record<Name, string>;

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

/** Whether the request carries `authorization` as its Authorization header; takes as long whatever it carries. */
export const isFrom = (request: Request, authorization: string): boolean =>
  timingSafeEqual(digest(request.headers.get('authorization') ?? ''), digest(authorization));

const statusFor: Record<Remedy, number> = { recipient: 422, wait: 429, again: 503, operator: 500 };

/** The answer for servers that read the status alone, and log the rest. */
export const refuse = ({ remedy, code, message, retryAfterSeconds }: Refusal): Response =>
  Response.json(
    { code, message },
    {
      status: statusFor[remedy],
      headers: retryAfterSeconds === undefined ? {} : { 'retry-after': `${retryAfterSeconds}` },
    },
  );

/** The answer to a message that has nothing to deliver, such as an invitation with a link. */
export const notACode = (kind: string | undefined): Response => {
  const message = `A message of the kind ${kind} has no code to deliver.`;
  return Response.json({ code: 'NOT_A_CODE', message }, { status: 422 });
};

/** `deliver` with TESSERA_URL and TESSERA_KEY of the environment; what it refuses is logged. */
export const deliverFromEnvironment = (timeoutMs?: number): Deliver => {
  const { TESSERA_URL: url, TESSERA_KEY: key } = settings('TESSERA_URL', 'TESSERA_KEY');
  const deliver = createDeliver({ url, key, ...(timeoutMs === undefined ? {} : { timeoutMs }) });
  return async (delivery) => {
    const outcome = await deliver(delivery);
    if (!outcome.sent) report(outcome.refusal);
    return outcome;
  };
};

/** Writes a refusal where whoever runs this will find it. */
const report = ({ code, message }: Refusal): void => console.error(`${code}: ${message}`);
