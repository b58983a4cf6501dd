// The simulators on one port: the providers' paths, the control API, and the page that shows the phones.
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createControl } from './control.ts';
import { createDeliveries } from './deliveries.ts';
import { createPhones, type Phones } from './phones.ts';
import { createStats, type Stats } from './stats.ts';
import { createTelegramSim, type TelegramSettings } from './telegram.ts';
import { createTurnstileSim } from './turnstile.ts';
import { createWhatsappSim, type WhatsappSettings } from './whatsapp.ts';

/** An answer; status 0 cuts the connection without one. */
export type Answer = {
  status: number;
  json?: unknown;
  html?: string;
  headers?: Record<string, string>;
};

export type SimulatorOptions = {
  port: number;
  host?: string;
  /** Where the API is: webhooks go there. */
  apiUrl: string;
  whatsapp: WhatsappSettings;
  telegram: TelegramSettings;
  /** Receipts that fall due within this time share a webhook call, as Meta's do. */
  statusBatchMs?: number;
};

export type Simulators = {
  url: string;
  port: number;
  phones: Phones;
  stats: Stats;
  setApiUrl(url: string): void;
  /** Webhook calls that the API has not taken yet. */
  pendingDeliveries(): number;
  close(): Promise<void>;
};

const maxBody = 1024 * 1024;
const maxWatchers = 50;

const readBody = (request: IncomingMessage): Promise<string> =>
  new Promise((resolve, reject) => {
    let text = '';
    request.setEncoding('utf8');
    request.on('data', (chunk: string) => {
      text += chunk;
      if (text.length > maxBody) request.destroy();
    });
    request.on('end', () => resolve(text));
    request.on('error', reject);
  });

const parse = (text: string): Record<string, unknown> | undefined => {
  try {
    const value: unknown = text === '' ? {} : JSON.parse(text);
    return typeof value === 'object' && value !== null
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
};

const write = (response: ServerResponse, { status, json, html, headers }: Answer): void => {
  if (status === 0) {
    response.destroy();
    return;
  }
  const type = html === undefined ? 'application/json' : 'text/html; charset=utf-8';
  response.writeHead(status, { 'content-type': type, ...headers });
  response.end(html ?? JSON.stringify(json));
};

const serveEvents = (
  phones: Phones,
  response: ServerResponse,
  watchers: Set<ServerResponse>,
): void => {
  if (watchers.size >= maxWatchers) {
    write(response, { status: 503, json: { error: 'too many pages are open' } });
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
  const send = (event: unknown): void => {
    response.write(`data: ${JSON.stringify(event)}\n\n`);
  };
  for (const { number, messages } of phones.recent(24).reverse()) {
    for (const message of messages.slice(0, 10).reverse())
      send({ phone: number, message, old: true });
  }
  watchers.add(response);
  const stop = phones.watch(send);
  response.on('close', () => {
    stop();
    watchers.delete(response);
  });
};

const pagePath = join(import.meta.dirname, 'page.html');

/** Opens the simulators; port 0 takes a free one. */
export const createSimulators = async (options: SimulatorOptions): Promise<Simulators> => {
  const host = options.host ?? '127.0.0.1';
  let { apiUrl } = options;
  const phones = createPhones();
  const stats = createStats();
  const deliveries = createDeliveries(() => apiUrl);
  const shared = { phones, stats, deliveries };
  const statusBatchMs = options.statusBatchMs ?? 20;
  const whatsapp = createWhatsappSim({ ...shared, settings: options.whatsapp, statusBatchMs });
  const telegram = createTelegramSim({ ...shared, settings: options.telegram });
  const turnstile = createTurnstileSim();
  const control = createControl({ phones, stats, telegram, whatsapp });
  const watchers = new Set<ServerResponse>();

  const route = async (
    request: IncomingMessage,
    url: URL,
    text: string,
  ): Promise<Answer | undefined> => {
    const method = request.method ?? 'GET';
    const path = url.pathname.split('/').filter(Boolean).map(decodeURIComponent);
    if (path[0] === 'turnstile') return turnstile.verify(new URLSearchParams(text));
    const body = parse(text);
    if (!body) return { status: 400, json: { error: 'the body is not JSON' } };
    if (path[0] === 'graph') {
      const token = (request.headers.authorization ?? '').replace(/^Bearer /, '');
      return whatsapp.serve({ method, path: path.slice(2), query: url.searchParams, token, body });
    }
    if (path[0] === 'telegram') {
      return telegram.serve((path[1] ?? '').replace(/^bot/, ''), path[2] ?? '', body);
    }
    if (method === 'GET' && path.length === 0) {
      return { status: 200, html: readFileSync(pagePath, 'utf8') };
    }
    return control.serve(method, path, body);
  };

  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://simulators');
    if (url.pathname === '/events') {
      serveEvents(phones, response, watchers);
      return;
    }
    readBody(request)
      .then((text) => route(request, url, text))
      .then((answer) =>
        write(response, answer ?? { status: 404, json: { error: 'there is nothing here' } }),
      )
      .catch(() =>
        write(response, { status: 400, json: { error: 'the request is not understood' } }),
      );
  });
  server.keepAliveTimeout = 65_000;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, host, resolve);
  });
  const { port } = server.address() as AddressInfo;

  return {
    url: `http://${host}:${port}`,
    port,
    phones,
    stats,
    setApiUrl: (next) => {
      apiUrl = next;
    },
    pendingDeliveries: deliveries.pending,
    close: async () => {
      deliveries.close();
      whatsapp.close();
      telegram.close();
      for (const watcher of watchers) watcher.end();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
};
