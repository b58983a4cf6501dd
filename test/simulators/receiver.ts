// A receiver of Tessera's webhooks, as a customer would run one: it verifies each event, keeps the newest, and can be
// switched to every way in which receivers trouble their senders.
import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock, Timers } from './clock.ts';
import { Refusal, readBody } from './http.ts';

export const receiverBehaviours = {
  ok: 'Answers 200 at once.',
  slow: 'Answers 200 after ten seconds.',
  silent: 'Never answers.',
  failing: 'Answers 500.',
  busy: 'Answers 503 and asks for 30 seconds with Retry-After.',
  dripping: 'Answers 200 and then one byte every half second, without end.',
  redirecting: 'Answers 302 to an address inside the network, which is never followed.',
  gone: 'Answers 410: events are held until the address is set again. The next npm start sets it.',
} as const;

export type ReceiverBehaviour = keyof typeof receiverBehaviours;

export type Received = {
  seq: number;
  at: number;
  /** The webhook-id header: the same in every attempt. */
  id: string;
  type: string;
  attempt: number;
  /** Whether the signature is ours; undefined: it could not be checked. */
  verified: boolean | undefined;
  /** Why it was not verified. */
  reason: string | null;
  answered: string;
  /** How often this id came before. */
  repeats: number;
  body: string;
};

type Verify = (body: string, headers: Record<string, string>) => void;

const keep = 200;
const slowMs = 10_000;
const dripMs = 500;

type Answer = (response: ServerResponse, timers: Timers) => void;

const drip = (response: ServerResponse, timers: Timers): void => {
  if (response.destroyed) return;
  response.write('.');
  timers.after(dripMs, () => drip(response, timers));
};

const answers: Record<ReceiverBehaviour, Answer> = {
  ok: (response) => response.writeHead(200).end(),
  slow: (response, timers) => timers.after(slowMs, () => response.writeHead(200).end()),
  silent: () => undefined,
  failing: (response) => response.writeHead(500).end(),
  busy: (response) => response.writeHead(503, { 'retry-after': '30' }).end(),
  dripping: (response, timers) => {
    response.writeHead(200);
    drip(response, timers);
  },
  redirecting: (response) => response.writeHead(302, { location: 'http://169.254.169.254/' }).end(),
  gone: (response) => response.writeHead(410).end(),
};

const said: Record<ReceiverBehaviour, string> = {
  ...{ ok: '200', slow: '200 after 10 s', silent: 'nothing', failing: '500', busy: '503' },
  ...{ dripping: '200, dripping', redirecting: '302', gone: '410' },
};

/** The package the README advises, with the secret of the file; a new secret counts from the next event on. */
const createVerifier = async (secretFile: string | undefined): Promise<Verify | undefined> => {
  // Images carry what the product needs to run and not what its tests do.
  const found = await import('standardwebhooks').catch(() => undefined);
  if (!found || secretFile === undefined) return undefined;
  return (body, headers) => {
    const secret = readFileSync(secretFile, 'utf8').trim();
    new found.Webhook(secret).verify(body, headers);
  };
};

const typeOf = (body: string): string => {
  try {
    return String((JSON.parse(body) as { type?: unknown }).type);
  } catch {
    return 'not JSON';
  }
};

const headersOf = ({ headers }: IncomingMessage): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join() : (value ?? ''),
    ]),
  );

export type Receiver = ReturnType<typeof createReceiver>;

export const createReceiver = (deps: {
  clock: Clock;
  timers: Timers;
  /** Holds the secret (whsec_…) of the account whose events come here. */
  secretFile?: string | undefined;
}) => {
  const { clock, timers, secretFile } = deps;
  const verifier = createVerifier(secretFile);
  const watchers = new Set<(event: Received) => void>();
  let events: Received[] = [];
  let behaviour: ReceiverBehaviour = 'ok';
  let seq = 0;

  const check = async (body: string, headers: Record<string, string>) => {
    const verify = await verifier;
    if (!verify) return { verified: undefined, reason: 'the package or the secret is missing' };
    try {
      verify(body, headers);
      return { verified: true, reason: null };
    } catch (error) {
      return { verified: false, reason: error instanceof Error ? error.message : 'unknown' };
    }
  };

  return {
    /** Takes a webhook: POST /receiver. */
    handle: async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      const body = (await readBody(request)).toString('utf8');
      const headers = headersOf(request);
      const id = headers['webhook-id'] ?? '';
      const event: Received = {
        ...{ seq: ++seq, at: clock.now(), id, type: typeOf(body), body },
        attempt: Number(headers['tessera-attempt'] ?? 1),
        ...(await check(body, headers)),
        answered: said[behaviour],
        repeats: events.filter((other) => other.id === id).length,
      };
      events = [...events.slice(1 - keep), event];
      for (const watch of watchers) watch(event);
      answers[behaviour](response, timers);
    },
    events: (): readonly Received[] => events,
    behaviour: () => behaviour,
    /** @throws Refusal for a word that is no behaviour */
    behave: (word: unknown): void => {
      if (typeof word !== 'string' || !(word in receiverBehaviours)) {
        const all = Object.keys(receiverBehaviours).join(', ');
        throw new Refusal(400, `behaviour must be one of ${all}.`);
      }
      behaviour = word as ReceiverBehaviour;
    },
    watch: (watcher: (event: Received) => void): (() => void) => {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    reset: (): void => {
      events = [];
      behaviour = 'ok';
    },
  };
};
