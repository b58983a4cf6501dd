// The load generator, a process of its own: so many connections, each sending its next request when the last was answered.

import { appCode } from '../support/authenticator.ts';
import { createHttpLine, type HttpLine, type LineAnswer } from './http-line.ts';
import type { LoadNews, LoadOrder, LoadReport, Operation } from './load-orders.ts';
import { codeOf, phoneOf, totpSecret } from './recipients.ts';

const maxSamples = 5;
const sampleLength = 400;

const paths: Record<Operation, string> = {
  bare: '/send',
  send: '/v1/otp/send',
  deliver: '/v1/otp/deliver',
  verify: '/v1/otp/verify',
  totp: '/v1/totp/verify',
};

const codeFor = (operation: Operation, index: number): string | undefined => {
  if (operation === 'totp') return appCode(totpSecret, Date.now());
  return operation === 'deliver' || operation === 'verify' ? codeOf(index) : undefined;
};

const requestOf = ({ operation, keys, port }: LoadOrder, index: number): string => {
  const phone = phoneOf(index);
  const code = codeFor(operation, index);
  const body = JSON.stringify(code === undefined ? { phone } : { phone, code });
  const key = keys[index % keys.length];
  return [
    `POST ${paths[operation]} HTTP/1.1`,
    `Host: 127.0.0.1:${port}`,
    ...(key === undefined ? [] : [`Authorization: Bearer ${key}`]),
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    '',
    body,
  ].join('\r\n');
};

const tell = (news: LoadNews): Promise<void> =>
  new Promise((resolve) => {
    process.send?.(news, undefined, undefined, () => resolve());
  });

/** What is counted: every answer, and those in the timed window with their time. */
const createCounts = () => {
  const latenciesUs: number[] = [];
  const statuses: Record<string, number> = {};
  const samples: string[] = [];
  let openedAt: number | undefined;
  let closedAt: number | undefined;

  return {
    note: ({ status, body }: LineAnswer, startedAt: number): void => {
      const now = performance.now();
      statuses[status] = (statuses[status] ?? 0) + 1;
      if (status !== 200 && samples.length < maxSamples) {
        samples.push(`${status} ${body.slice(0, sampleLength)}`);
      }
      if (openedAt === undefined || closedAt !== undefined) return;
      latenciesUs.push(Math.round((now - startedAt) * 1000));
    },
    open: (): void => {
      openedAt = performance.now();
      void tell({ kind: 'opened' });
    },
    close: (): void => {
      if (openedAt === undefined || closedAt !== undefined) return;
      closedAt = performance.now();
      void tell({ kind: 'closed' });
    },
    report: (used: number): LoadReport => ({
      requests: latenciesUs.length,
      seconds: ((closedAt ?? 0) - (openedAt ?? 0)) / 1000,
      latenciesUs: Uint32Array.from(latenciesUs),
      ...{ statuses, samples, used },
    }),
  };
};

const ask = async (line: HttpLine, request: string): Promise<LineAnswer> => {
  try {
    return await line.ask(request);
  } catch (error) {
    return { status: 0, body: String(error) };
  }
};

const run = async (order: LoadOrder): Promise<LoadReport> => {
  const counts = createCounts();
  let used = 0;
  let over = false;
  const finish = (): void => {
    over = true;
    counts.close();
  };
  const timers = order.measureMs
    ? [
        setTimeout(counts.open, order.warmupMs),
        setTimeout(finish, order.warmupMs + order.measureMs),
      ]
    : [];
  const drive = async (): Promise<void> => {
    const line = createHttpLine(order.port);
    while (!over && used < order.count) {
      const request = requestOf(order, order.first + used);
      used += 1;
      const startedAt = performance.now();
      counts.note(await ask(line, request), startedAt);
    }
    // Out of phones: fewer than all connections would be at work from here on.
    finish();
    line.close();
  };
  await Promise.all(Array.from({ length: order.connections }, drive));
  for (const timer of timers) clearTimeout(timer);
  return counts.report(used);
};

process.on('message', (order: LoadOrder) => {
  run(order).then(
    (report) => tell({ kind: 'done', report }),
    (error: unknown) => tell({ kind: 'failed', reason: String(error) }),
  );
});
process.on('disconnect', () => process.exit(0));
// The terminal's Ctrl-C reaches everybody; the benchmark itself says when this process ends.
process.on('SIGINT', () => undefined);
