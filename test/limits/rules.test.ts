// The limits table against the contract, the tiers, and what clients are told.
import test from 'ava';
import {
  type Allowance,
  rateLimitHeaders,
  rateLimitState,
  refusalExtras,
  refusalOf,
} from '../../lib/limits/answers.ts';
import {
  customTier,
  fixedTier,
  rowsFor,
  standardTier,
  tier1000,
  tier5000,
} from '../../lib/limits/rules.ts';
import { admissionTable, type LimitRow } from '../../lib/limits/table.ts';

const short = ({ name, limit, windowMs }: LimitRow) => `${name} ${limit}/${windowMs / 1_000}`;

const ofEverySend = [
  'resend 1/30',
  'send 3/600',
  'recipient_10m 6/600',
  'recipient_24h 20/86400',
  'credential 300/60',
];

test('a send and a deliver are guarded by every row of the contract that names them', (t) => {
  const expected = [...ofEverySend, 'burst 100/10', 'sustained 300/60', 'hourly 18000/3600'];
  t.deepEqual(rowsFor('send', standardTier).map(short), expected);
  t.deepEqual(rowsFor('deliver', standardTier).map(short), expected);
});

test('a verify is guarded by its credential alone', (t) => {
  t.deepEqual(rowsFor('verify', standardTier).map(short), ['credential 300/60']);
});

test('a playground send counts for its recipient, for the recipient of everybody, and for its address', (t) => {
  t.deepEqual(rowsFor('playground', standardTier).map(short), [
    ...['playground_1m 1/60', 'playground_10m 3/600', 'playground_24h 5/86400'],
    ...['recipient_10m 6/600', 'recipient_24h 20/86400', 'source_ip 20/3600'],
  ]);
});

test('a tier changes the aggregate rates and nothing else', (t) => {
  const aggregate = (tier: typeof standardTier) => rowsFor('send', tier).map(short).slice(-3);
  t.deepEqual(rowsFor('send', tier5000).map(short).slice(0, -3), ofEverySend);
  t.deepEqual(aggregate(tier1000), ['burst 333/10', 'sustained 1000/60', 'hourly 60000/3600']);
  t.deepEqual(aggregate(tier5000), ['burst 1667/10', 'sustained 5000/60', 'hourly 300000/3600']);
  t.deepEqual(aggregate(customTier(600)), [
    ...['burst 200/10', 'sustained 600/60', 'hourly 36000/3600'],
  ]);
  t.deepEqual(aggregate(customTier(600, 50)), [
    ...['burst 50/10', 'sustained 600/60', 'hourly 36000/3600'],
  ]);
  t.is(fixedTier('tier-1000'), tier1000);
  t.is(customTier(1).burst, 1);
});

test('a custom tier has bounds', (t) => {
  for (const sustained of [0, -1, 20_001, 1.5, Number.NaN]) {
    t.throws(() => customTier(sustained), { instanceOf: RangeError }, String(sustained));
  }
  for (const burst of [0, 601, 2.5]) {
    t.throws(() => customTier(600, burst), { instanceOf: RangeError }, String(burst));
  }
});

test('rows that share a log stand side by side, the longest window and the largest limit last', (t) => {
  for (const [index, row] of admissionTable.entries()) {
    const next = admissionTable[index + 1];
    if (next?.key !== row.key) {
      t.false(
        admissionTable.slice(index + 1).some(({ key }) => key === row.key),
        row.name,
      );
    } else {
      t.true(next.windowMs > row.windowMs && next.limit >= row.limit, row.name);
      t.is(next.group, row.group);
    }
  }
});

test('a refusal says which limit, whose, and when to come back, as the contract has it', (t) => {
  const [row] = admissionTable;
  if (row === undefined) return t.fail();
  const now = Date.UTC(2026, 10, 20, 22, 0, 0, 500);
  t.deepEqual(refusalExtras(refusalOf(row, 28_001, now)), {
    reason: 'cooldown',
    layer: 'origin',
    dimension: 'recipient',
    retry_after_seconds: 29,
    reset_at: '2026-11-20T22:00:29.500Z',
    window_seconds: 30,
    limit: 1,
  });
});

test('the seconds of a refusal stay within 1 and 86,400', (t) => {
  const row = admissionTable.find(({ name }) => name === 'recipient_24h');
  if (row === undefined) return t.fail();
  const seconds = (waitMs: number) => refusalOf(row, waitMs, 0).retryAfterSeconds;
  t.deepEqual([0, 1, 1_000, 1_001, 86_400_000, 99_999_999].map(seconds), [
    ...[1, 1, 1, 2, 86_400, 86_400],
  ]);
  t.is(refusalOf(row, 1, 0).windowSeconds, 86_400);
});

const allowances = (burst: number, sustained: number, hourly: number): Allowance[] => [
  { name: 'burst', limit: 100, windowMs: 10_000, used: burst, resetMs: burst && 9_001 },
  {
    name: 'sustained',
    limit: 300,
    windowMs: 60_000,
    used: sustained,
    resetMs: sustained && 59_000,
  },
  {
    name: 'hourly',
    limit: 18_000,
    windowMs: 3_600_000,
    used: hourly,
    resetMs: hourly && 3_599_999,
  },
];

test('the headers give the policy of the tier and the allowance with the least left', (t) => {
  t.deepEqual(rateLimitHeaders(standardTier, allowances(1, 1, 1)), {
    'RateLimit-Policy': '"burst";q=100;w=10, "sustained";q=300;w=60, "hourly";q=18000;w=3600',
    RateLimit: '"burst";r=99;t=10',
    'X-Service-Rate-Tier': 'standard',
  });
  t.is(rateLimitState(allowances(1, 250, 250)), '"sustained";r=50;t=59');
  t.is(rateLimitState(allowances(0, 0, 17_999)), '"hourly";r=1;t=3600');
  t.is(rateLimitState(allowances(0, 0, 0)), '"burst";r=100');
  t.is(rateLimitState(allowances(120, 120, 120)), '"burst";r=0;t=10');
});

test('without a count the headers name the policy alone', (t) => {
  t.deepEqual(rateLimitHeaders(customTier(900), []), {
    'RateLimit-Policy': '"burst";q=300;w=10, "sustained";q=900;w=60, "hourly";q=54000;w=3600',
    'X-Service-Rate-Tier': 'custom',
  });
});
