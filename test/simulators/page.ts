// The page of the simulators: the wall of phones, fed live by server-sent events.
import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import type { Timers } from './clock.ts';
import { behaviourBody } from './control.ts';
import { answered, Refusal, type Route } from './http.ts';
import type { Bubble, PhoneEvent, Phones } from './phones.ts';

const maxPages = 32;
const maxPhones = 40;
const maxBubbles = 30;
const everyMs = 150;
const maxChangesPerTick = 120;
const pingEveryMs = 15_000;
const maxUnsentBytes = 1 << 20;

/** What the pages of the simulators may load: themselves alone. */
export const pagePolicy =
  "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'";

const bubbleBody = ({ seq, channel, by, code, text, atMs }: Bubble) => ({
  ...{ seq, channel, by, code, text },
  at: new Date(atMs).toISOString(),
});

export type Page = ReturnType<typeof createPage>;

/** Creates the page and its events. Under load pages get the newest changes of each tick, and how many were left out. */
export const createPage = ({ phones, timers }: { phones: Phones; timers: Timers }) => {
  const html = readFileSync(join(import.meta.dirname, 'page.html'));
  const pages = new Set<ServerResponse>();
  let stopWatching: (() => void) | undefined;
  let waiting: PhoneEvent[] = [];
  let skipped = 0;
  let ticking = false;

  const phoneBody = (phone: string) => ({
    phone,
    behaviour: behaviourBody(phones.behaviour(phone)),
    bubbles: phones.bubbles(phone).slice(-maxBubbles).map(bubbleBody),
  });

  const send = (page: ServerResponse, event: string, data: unknown) => {
    // A page that does not read is let go; it comes back by itself.
    if (page.writableLength > maxUnsentBytes) page.destroy();
    else page.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  };

  const snapshot = () => ({ phones: phones.recent().slice(0, maxPhones).reverse().map(phoneBody) });

  const changeBody = (event: PhoneEvent) => {
    if (event.kind === 'bubble') return { ...event, bubble: bubbleBody(event.bubble) };
    if (event.kind !== 'behaviour') return event;
    return { ...event, behaviour: behaviourBody(phones.behaviour(event.phone)) };
  };

  const tick = () => {
    ticking = false;
    const changes = waiting.map(changeBody);
    for (const page of pages) send(page, 'changes', { changes, skipped });
    waiting = [];
    skipped = 0;
  };

  const watch = (event: PhoneEvent) => {
    waiting.push(event);
    if (waiting.length > maxChangesPerTick) {
      waiting.shift();
      skipped += 1;
    }
    if (ticking) return;
    ticking = true;
    timers.after(everyMs, tick);
  };

  const ping = () => {
    for (const page of pages) page.write(': still here\n\n');
    if (pages.size > 0) timers.after(pingEveryMs, ping);
  };

  const leave = (page: ServerResponse) => {
    pages.delete(page);
    if (pages.size > 0) return;
    stopWatching?.();
    stopWatching = undefined;
  };

  const welcome = (page: ServerResponse) => {
    if (pages.size >= maxPages) throw new Refusal(503, 'Too many pages are open.');
    page.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    page.write('retry: 1000\n\n');
    send(page, 'snapshot', snapshot());
    if (pages.size === 0) timers.after(pingEveryMs, ping);
    pages.add(page);
    stopWatching ??= phones.watch(watch);
    page.on('close', () => leave(page));
  };

  const routes: Route[] = [
    {
      method: 'GET',
      path: '/',
      handle: ({ response }) => {
        const headers = { 'content-security-policy': pagePolicy, 'cache-control': 'no-cache' };
        response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', ...headers });
        response.end(html);
        return answered;
      },
    },
    {
      method: 'GET',
      path: '/events',
      handle: ({ response }) => {
        welcome(response);
        return answered;
      },
    },
  ];

  return {
    routes,
    close: (): void => {
      for (const page of pages) page.end();
    },
  };
};
