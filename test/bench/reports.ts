// npm run bench:reports: what logs and analytics cost with 5 million messages, beside the same calls with 50,000.
import { parseArgs } from 'node:util';
import { day } from '../../lib/kernel/clock.ts';
import { cursorOf } from '../../lib/kernel/cursor.ts';
import { idAt } from '../../lib/kernel/ids.ts';
import { type Customer, type Stack, startStack } from '../support/stack.ts';
import { fillMessages, spanDays } from './many-messages.ts';

const { values } = parseArgs({
  options: {
    large: { type: 'string', default: '5000000' },
    small: { type: 'string', default: '50000' },
    /** So many that a p95 is no single slow call. */
    rounds: { type: 'string', default: '200' },
    export: { type: 'string', default: '1000000' },
    /** A regular expression: measure only the calls it fits. */
    only: { type: 'string', default: '' },
  },
});
const rounds = Number(values.rounds);

/** The most that a call may cost with the large database, as a multiple of its cost with the small one. */
const target = 3;

type Side = {
  name: string;
  stack: Stack;
  big: Customer;
  few: Customer;
  times: Map<string, number[]>;
};

const now = Date.now();
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const iso = (daysAgo: number): string => new Date(now - daysAgo * day).toISOString();

const open = async (name: string, count: number): Promise<Side> => {
  const stack = await startStack(`bench_${name}`, { workers: [] });
  const [big, few] = [await stack.customer(), await stack.customer()];
  const begun = performance.now();
  const others = [few.accountId];
  await fillMessages(stack.api.db, { count, big: big.accountId, others, now });
  say(`${name}: ${count} messages in ${Math.round((performance.now() - begun) / 1000)} s`);
  return { name, stack, big, few, times: new Map() };
};

const middle = `before=${cursorOf(idAt(now - (spanDays / 2) * day))}`;
const deep = `before=${cursorOf(idAt(now - (spanDays - 5) * day))}`;

const logs = [
  ...[
    'otps/recent?limit=50',
    'otps?limit=100',
    `otps?limit=100&${middle}`,
    `otps?limit=100&${deep}`,
  ],
  ...[
    'status=failed',
    'channel=telegram',
    'mode=test',
    'mode=test&status=failed&channel=telegram',
  ].flatMap((filter) => [`otps?limit=100&${filter}`, `otps?limit=100&${filter}&${deep}`]),
  `otps?limit=100&status=verified&from=${iso(60)}&to=${iso(59)}`,
  ...[
    'totp/log?limit=100',
    `totp/log?limit=100&${deep}`,
    `totp/log?limit=100&status=failed&${deep}`,
  ],
  ...['transactions?limit=100', `transactions?limit=100&${deep}`],
];
const analytics = ['', '/timeseries', '/funnel', '/channels'].flatMap((call) =>
  [1, 30, 365].map((period) => `analytics${call}?period=${period}`),
);
const paths = [...logs, ...analytics, 'limits'].filter((path) =>
  new RegExp(values.only).test(path),
);

const named = (path: string): string =>
  path
    .replace(middle, 'before=middle')
    .replace(deep, 'before=deep')
    .replace(/from=.*/, 'from=…&to=…');

/** Without the test client's check of every answer, which would be measured too. */
const ask = ({ url }: Stack, { live }: Customer, path: string): Promise<Response> =>
  fetch(`${url}/v1/clients/${path}`, { headers: { authorization: `Bearer ${live.key}` } });

/** Lines of an answer, up to so many; the rest is not read. */
const countLines = async (answer: Response, most: number): Promise<number> => {
  let lines = 0;
  for await (const part of answer.body ?? []) {
    for (const byte of part as Uint8Array) if (byte === 10) lines += 1;
    if (lines > most) break;
  }
  return Math.min(lines, most);
};

const call = async ({ stack, times }: Side, customer: Customer, path: string, who: string) => {
  const { redis } = stack.api;
  for (const limit of ['read', 'export']) {
    await redis.del(`${stack.config.keyPrefix}${limit}:r:${customer.accountId}`);
  }
  const begun = performance.now();
  const answer = await ask(stack, customer, path);
  const text = await answer.text();
  const took = performance.now() - begun;
  if (answer.status !== 200) throw new Error(`${path}: ${text}`);
  const name = `${who} ${named(path)}`;
  times.set(name, [...(times.get(name) ?? []), took]);
};

const percentileOf = (all: readonly number[], share: number): number => {
  const sorted = all.toSorted((one, other) => one - other);
  return sorted[Math.ceil(share * sorted.length) - 1] ?? 0;
};

/** One after the other on both sides in turn, so that whatever else the machine does falls on both. */
const measure = async (sides: readonly Side[]): Promise<void> => {
  for (let round = -2; round < rounds; round++) {
    for (const path of paths) {
      for (const side of sides) {
        await call(side, side.big, path, 'half');
        await call(side, side.few, path, 'few ');
      }
    }
    // The first two only warm up.
    if (round < 0) for (const { times } of sides) times.clear();
  }
};

const report = ([small, large]: readonly [Side, Side]): number => {
  say('\nms: p50 and p95 with few messages, with many, and how many times as long\n');
  let missed = 0;
  for (const [name, few] of small.times) {
    const many = large.times.get(name) ?? [];
    const [a50, a95, b50, b95] = [few, many].flatMap((all) =>
      [0.5, 0.95].map((share) => percentileOf(all, share)),
    ) as [number, number, number, number];
    const ratio = b95 / a95;
    if (ratio > target) missed += 1;
    const figures = [a50, a95, b50, b95].map((ms) => ms.toFixed(1).padStart(7)).join(' ');
    const mark = ratio > target ? '  MISSED' : '';
    say(`${figures}  p50 ×${(b50 / a50).toFixed(2)}  p95 ×${ratio.toFixed(2)}  ${name}${mark}`);
  }
  return missed;
};

/** Reads the export of the large account and throws it away; answers rows, seconds and memory. */
const exportAll = async ({ stack, big }: Side, most: number) => {
  await stack.api.redis.del(`${stack.config.keyPrefix}export:r:${big.accountId}`);
  globalThis.gc?.();
  const before = process.memoryUsage().rss;
  let peak = before;
  const watch = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage().rss);
  }, 20);
  const begun = performance.now();
  const rows = await countLines(await ask(stack, big, 'otps/export'), most);
  clearInterval(watch);
  const mb = (bytes: number) => Math.round(bytes / 2 ** 20);
  say(
    `\nexport: ${rows} rows in ${Math.round((performance.now() - begun) / 1000)} s; ` +
      `memory of API and reader ${mb(before)} MB before, ${mb(peak)} MB at most`,
  );
};

const small = await open('small', Number(values.small));
const large = await open('large', Number(values.large));
try {
  await measure([small, large]);
  const missed = report([small, large]);
  await exportAll(large, Number(values.export));
  say(
    missed === 0
      ? `\nAll within ${target} times.`
      : `\n${missed} calls are beyond ${target} times.`,
  );
  process.exitCode = missed === 0 ? 0 : 1;
} finally {
  await small.stack.close();
  await large.stack.close();
}
