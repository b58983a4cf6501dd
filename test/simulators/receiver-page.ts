// The receiver's page and its control calls: events live by server-sent events, and the switch.
import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import type { Timers } from './clock.ts';
import { answered, Refusal, type Route } from './http.ts';
import { pagePolicy } from './page.ts';
import { type Received, type Receiver, receiverBehaviours } from './receiver.ts';

const maxPages = 32;
const pingEveryMs = 15_000;
const maxUnsentBytes = 1 << 20;

const eventBody = ({ at, ...event }: Received) => ({
  ...event,
  verified: event.verified ?? null,
  at: new Date(at).toISOString(),
});

export const createReceiverPage = ({
  receiver,
  timers,
}: {
  receiver: Receiver;
  timers: Timers;
}) => {
  const html = readFileSync(join(import.meta.dirname, 'receiver.html'));
  const pages = new Set<ServerResponse>();

  const send = (page: ServerResponse, name: string, data: unknown): void => {
    if (page.writableLength > maxUnsentBytes) page.destroy();
    else page.write(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
  };
  const tell = (name: string, data: unknown): void => {
    for (const page of pages) send(page, name, data);
  };
  const state = () => ({
    behaviour: receiver.behaviour(),
    events: receiver.events().map(eventBody),
  });
  const ping = (): void => {
    for (const page of pages) page.write(': still here\n\n');
    if (pages.size > 0) timers.after(pingEveryMs, ping);
  };
  receiver.watch((event) => tell('event', eventBody(event)));

  const welcome = (page: ServerResponse): void => {
    if (pages.size >= maxPages) throw new Refusal(503, 'Too many pages are open.');
    page.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    page.write('retry: 1000\n\n');
    send(page, 'state', state());
    if (pages.size === 0) timers.after(pingEveryMs, ping);
    pages.add(page);
    page.on('close', () => pages.delete(page));
  };

  const routes: Route[] = [
    {
      ...{ method: 'GET', path: '/receiver' },
      handle: ({ response }) => {
        const headers = { 'content-security-policy': pagePolicy, 'cache-control': 'no-cache' };
        response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', ...headers });
        response.end(html);
        return answered;
      },
    },
    {
      ...{ method: 'GET', path: '/receiver/stream' },
      handle: ({ response }) => {
        welcome(response);
        return answered;
      },
    },
    { ...{ method: 'GET', path: '/receiver/events' }, handle: state },
    {
      ...{ method: 'GET', path: '/receiver/behaviour' },
      handle: () => ({ behaviour: receiver.behaviour(), about: receiverBehaviours }),
    },
    {
      ...{ method: 'PUT', path: '/receiver/behaviour' },
      handle: ({ body }) => {
        receiver.behave(body.behaviour);
        tell('state', state());
        return { behaviour: receiver.behaviour() };
      },
    },
  ];
  return {
    routes,
    /** Shows what is left after a reset. */
    refresh: () => tell('state', state()),
    close: (): void => {
      for (const page of pages) page.end();
    },
  };
};
