// The page of the simulators and its live events.
import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { answered, Refusal, type Route } from './http.ts';
import type { Bubble, PhoneEvent, Phones } from './phones.ts';

const maxWatchers = 50;
const shownPhones = 24;
const shownBubbles = 10;

const wireBubble = (phone: string, { seq, channel, by, code, text, atMs }: Bubble) => ({
  kind: 'bubble',
  phone,
  bubble: { seq, channel, by, code, text, at: new Date(atMs).toISOString() },
});

const wire = (event: PhoneEvent): unknown =>
  event.kind === 'bubble' ? wireBubble(event.phone, event.bubble) : event;

/** What a page that has just opened is shown first: the phones that heard something last. */
const history = (phones: Phones): unknown[] =>
  phones
    .recent()
    .slice(0, shownPhones)
    .reverse()
    .flatMap((phone) =>
      phones
        .bubbles(phone)
        .toSorted((left, right) => left.seq - right.seq)
        .slice(-shownBubbles)
        .map((bubble) => ({ ...wireBubble(phone, bubble), old: true })),
    );

/** The page and the stream of events behind it; `close` ends the streams. */
export const createPage = ({ phones }: { phones: Phones }) => {
  const html = readFileSync(join(import.meta.dirname, 'page.html'));
  const watching = new Set<ServerResponse>();

  const stream = (response: ServerResponse): void => {
    if (watching.size >= maxWatchers) throw new Refusal(503, 'Too many pages are open.');
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    response.flushHeaders();
    const send = (event: unknown): void => {
      response.write(`data: ${JSON.stringify(event)}\n\n`);
    };
    for (const event of history(phones)) send(event);
    watching.add(response);
    const stop = phones.watch((event) => send(wire(event)));
    response.on('close', () => {
      stop();
      watching.delete(response);
    });
  };

  const routes: Route[] = [
    {
      method: 'GET',
      path: '/',
      handle: ({ response }) => {
        response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(html);
        return answered;
      },
    },
    {
      method: 'GET',
      path: '/events',
      handle: ({ response }) => {
        stream(response);
        return answered;
      },
    },
  ];
  return {
    routes,
    close: (): void => {
      for (const response of watching) response.end();
    },
  };
};
