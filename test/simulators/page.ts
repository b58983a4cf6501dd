// The page of the simulators and its live events.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Timers } from './clock.ts';
import { answered, type Route } from './http.ts';
import type { Phones } from './phones.ts';

export const createPage = (_deps: { phones: Phones; timers: Timers }) => {
  const html = readFileSync(join(import.meta.dirname, 'page.html'));
  const routes: Route[] = [
    {
      method: 'GET',
      path: '/',
      handle: ({ response }) => {
        response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(html);
        return answered;
      },
    },
  ];
  return { routes, close: () => undefined };
};
