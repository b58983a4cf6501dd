// Each violation of the run with slow clients is found when it is planted in the findings of a sound one.
import test from 'ava';
import { judgeSlowClients, percentile, type SlowFindings } from './slow-clients-judge.ts';

const sound: SlowFindings = {
  before: { ms: Array.from({ length: 100 }, (_, n) => n + 1), failures: [] },
  during: { ms: Array.from({ length: 100 }, (_, n) => (n + 1) * 2), failures: [] },
  attack: { opened: 9_000, ended: 5_000, answers: { 503: 9, 400: 2 } },
  died: [],
  rssBefore: [150, 160],
  rssDuring: [250, 260, 270, 280],
  heldDuring: [300, 4_100],
  healthMs: 100,
};

const violated = (change: Partial<SlowFindings>): string[] =>
  judgeSlowClients(Object.assign({}, sound, change))
    .filter(({ violations }) => violations.length > 0)
    .map(({ name }) => name);

test('a sound run violates nothing', (t) => {
  t.deepEqual(violated({}), []);
});

const answered = (answers: Record<string, number>) => ({
  attack: Object.assign({}, sound.attack, { answers }),
});

const plants: readonly (readonly [string, Partial<SlowFindings>, RegExp])[] = [
  ['a process died', { died: ['api'] }, /nothing dies/],
  [
    'a send failed without slow clients',
    { before: { ms: sound.before.ms, failures: [0] } },
    /carries the sends/,
  ],
  ['a send failed', { during: { ms: sound.during.ms, failures: [503] } }, /every send/],
  ['no send was made', { during: { ms: [], failures: [] } }, /every send/],
  [
    'p99 more than doubled',
    { during: { ms: sound.before.ms.map((ms) => ms * 2.1), failures: [] } },
    /p99/,
  ],
  ['a stranger got 200', answered({ 200: 1 }), /slow clients get/],
  ['a stranger got 500', answered({ 500: 1, 503: 4 }), /slow clients get/],
  [
    'nobody was closed',
    { attack: Object.assign({}, sound.attack, { ended: 0 }) },
    /slow clients get/,
  ],
  ['too many connections', { heldDuring: [300, 4_201] }, /no more connections/],
  ['too much memory', { rssDuring: [390, 401] }, /memory/],
  ['memory that grows', { rssDuring: [200, 200, 230, 260] }, /memory/],
  ['memory that was not seen', { rssDuring: [] }, /memory/],
  ['/health was slow', { healthMs: 2_001 }, /health/],
  ['/health did not answer', { healthMs: Number.POSITIVE_INFINITY }, /health/],
];

for (const [what, change, name] of plants) {
  test(`found: ${what}`, (t) => {
    const names = violated(change);
    t.is(names.length, 1, names.join(', '));
    t.regex(names[0] ?? '', name);
  });
}

test('a percentile is the value below which that share lies', (t) => {
  t.is(percentile([3, 1, 2], 0.5), 2);
  t.is(percentile(sound.before.ms, 0.99), 99);
  t.is(percentile([], 0.99), 0);
});
