// The benchmark's own arithmetic: percentiles, ratios, what makes a run unsound, and the phones it uses.
import test from 'ava';
import { phoneFacts } from '../../lib/kernel/phone.ts';
import { expectedRate } from './cycles.ts';
import { readAnswer } from './http-line.ts';
import type { Operation } from './load-orders.ts';
import { readOptions } from './options.ts';
import { codeOf, phoneCount, phoneOf } from './recipients.ts';
import type { Round } from './rounds.ts';
import { figuresOf, memoryFigures, percentile } from './summary.ts';
import { notesOn, ratioVerdicts, soundness } from './targets.ts';

const round = (
  operation: Operation,
  cycle: number,
  more: Partial<Round['report']> = {},
): Round => ({
  ...{ operation, cycle, drainedMs: cycle, accepted: 4, othersMs: 0 },
  cpuMs: { api: 8 },
  memory: [{ cycle, atMs: cycle * 60_000, mb: { api: 100 + 10 * cycle } }],
  report: {
    ...{ requests: 4, seconds: 2, samples: [], used: 4 },
    latenciesUs: Uint32Array.from([4_000, 1_000, 3_000, 2_000]),
    statuses: { '200': 4 },
    ...more,
  },
});

test('a percentile is the smallest value that enough values do not exceed', (t) => {
  const values = Uint32Array.from({ length: 200 }, (_, index) => index + 1);
  t.is(percentile(values, 0.5), 100);
  t.is(percentile(values, 0.99), 198);
  t.is(percentile(Uint32Array.of(7), 0.99), 7);
  t.is(percentile(new Uint32Array(0), 0.5), 0);
});

test('the rounds of an operation add up', (t) => {
  const figures = figuresOf('send', [round('send', 1), round('bare', 1), round('send', 2)]);
  t.is(figures.throughput, 2);
  t.deepEqual([figures.p50Ms, figures.p99Ms, figures.maxMs], [2, 4, 4]);
  t.deepEqual(figures.cpuMs, { api: 2 });
  t.deepEqual([figures.answered, figures.accepted, figures.drainedMs], [8, 8, 2]);
});

test('the product is held against the bare pipeline, and verify against send', (t) => {
  const bare = figuresOf('bare', [round('bare', 1)]);
  const send = figuresOf('send', [round('send', 1, { requests: 3 })]);
  const verify = figuresOf('verify', [round('verify', 1, { requests: 3 })]);
  const verdicts = ratioVerdicts({ bare, send, verify });
  t.deepEqual(
    verdicts.map(({ value, met }) => [value, met]),
    [
      [0.75, true],
      [1, true],
      [1, false],
    ],
  );
});

test('an answer other than 200 and a message too few make a run unsound', (t) => {
  const statuses = { '200': 3, '429': 1 };
  const limited = round('send', 1, { statuses, samples: ['429 too many'] });
  const mistakes = soundness([figuresOf('send', [limited])]);
  t.is(mistakes.length, 3);
  t.regex(mistakes.join('\n'), /1 × 429[\s\S]*too many[\s\S]*3 answers say sent/);
  t.deepEqual(soundness([figuresOf('send', [round('send', 1)])]), []);
});

test('a machine that others use as well is mentioned', (t) => {
  const disturbed = figuresOf('send', [{ ...round('send', 1), othersMs: 1_000 }]);
  t.regex(notesOn([disturbed], 2).join(''), /send 25 %/);
  t.deepEqual(notesOn([figuresOf('send', [round('send', 1)])], 2), []);
});

test('memory: its most, and its growth once heaps are warm', (t) => {
  const figures = memoryFigures('api', [round('send', 1), round('send', 2), round('send', 3)]);
  t.is(figures.maxMb, 130);
  t.is(figures.growth, 130 / 120);
  t.is(memoryFigures('api', [round('send', 1)]).growth, undefined);
});

test('a round is given phones for what the rounds before it came to', (t) => {
  t.is(expectedRate([round('bare', 1)], 'send'), 2.5);
  t.is(expectedRate([round('bare', 1), round('deliver', 1)], 'verify'), 5);
  t.is(expectedRate([round('verify', 1)], 'verify'), 2.5);
});

test('phones are valid, live and used once', (t) => {
  const phones = Array.from({ length: 5_000 }, (_, index) => phoneOf(index));
  t.is(new Set(phones).size, phones.length);
  for (const phone of [...phones.slice(0, 100), phoneOf(phoneCount - 1)]) {
    t.like(phoneFacts(phone), { possible: true, country: 'US' });
  }
  t.is(codeOf(7), '000007');
});

test('an answer is read once it is whole', (t) => {
  const text = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello';
  t.is(readAnswer(Buffer.from(text.slice(0, 30))), undefined);
  t.is(readAnswer(Buffer.from(text.slice(0, -1))), undefined);
  t.deepEqual(readAnswer(Buffer.from(text)), { status: 200, body: 'hello', closes: true });
  t.throws(() => readAnswer(Buffer.from('HTTP/1.1 200 OK\r\n\r\n')));
});

test('options are checked', (t) => {
  t.like(readOptions(['--quick', '--no-receipts']), { cycles: 1, receipts: false });
  t.deepEqual(readOptions(['--only', 'verify,bare'])?.operations, ['bare', 'verify']);
  t.is(readOptions(['--help']), undefined);
  t.throws(() => readOptions(['--cycles', 'many']), { message: /--cycles/ });
  t.throws(() => readOptions(['--only', 'receive']), { message: /--only/ });
});
