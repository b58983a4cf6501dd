// What the console calls a problem, and in which words.
import test from 'ava';
import { age } from '../../api/ops/console/format.ts';
import { problemsOf } from '../../api/ops/console/problems.ts';
import { type Channel, seenChannel } from '../../api/ops/console/seen.ts';
import { lastProof } from '../../lib/pulse/books.ts';
import { foldTallies, type Minute } from '../../lib/sender/tally-rules.ts';

const answering = { status: 'ok' };
const engines = { redis: answering, mysql: answering, rabbitmq: answering };

test('what could not be looked at is a problem, unless an engine that is away explains it', (t) => {
  const unseen = [{ what: 'queues', why: 'There was no answer within four seconds.' }];
  const [problem] = problemsOf({ checks: engines, unseen });
  t.is(problem?.severity, 'urgent');
  t.is(
    problem?.text,
    'Nobody knows how these are: queues. There was no answer within four seconds.',
  );
  const away = problemsOf({ checks: { ...engines, redis: { status: 'down' } }, unseen });
  t.deepEqual(
    away.map(({ about }) => about),
    ['engine redis'],
  );
});

test('books that differ, and pauses of another day, are told with their day', (t) => {
  const books = { at: '2026-11-19T02:00:00.000Z', mismatches: 2 };
  const paused = { by: 'Ada', reason: '', at: '2026-11-18T09:12:31.000Z' };
  const channel = { name: 'Telegram', job: 'telegram.send', state: 'paused', since: null } as const;
  const texts = problemsOf({ books, channels: [{ ...channel, paused, error: null }] });
  t.true(texts[0]?.text.includes('2 mismatches when they were last compared, at 19 Nov 02:00:00'));
  t.true(texts[1]?.text.includes('paused since 18 Nov 09:12:31 by Ada'));
});

test('the books are as the newest proof says, whichever process made it', (t) => {
  const proof = (mismatches: number, seconds: number) => ({
    metrics: [
      ['tessera_reconcile_mismatches', mismatches] as const,
      ['tessera_reconcile_timestamp_seconds', seconds] as const,
    ].map(([name, value]) => ({
      ...{ name, help: '', type: 'gauge', aggregator: 'sum' },
      values: [{ value, labels: {} }],
    })),
  });
  t.is(lastProof([{ metrics: [] }]), null);
  t.deepEqual(lastProof([proof(3, 100), proof(0, 200)]), { at: 200_000, mismatches: 0 });
});

/** What the overview says of a channel whose minutes went so, the newest last. */
const errorAfter = (...fields: Minute['fields'][]) => {
  const minutes = fields.map((each, n) => ({ at: n * 60_000, fields: each }));
  const hour = { ...foldTallies(minutes), success_rate: null };
  const channel = { channel: 'telegram', status: 'ok', since: null, last_hour: hour };
  return seenChannel(channel as unknown as Channel, null).error;
};

test('a channel fails for the reason of the last minutes, not for that of the last hour', (t) => {
  const before = [['refused:retry:131000', 500]] as const;
  const fine = [['accepted', 50]] as const;
  const now = [['refused:broken:190', 5]] as const;
  t.like(errorAfter(before, fine, fine, now), {
    ...{ what: 'answers 190 (token, rights or payment)', since: '00:03', failed: 5, most: false },
  });
  t.is(errorAfter([['unknown', 4]], [['refused:retry:1', 1]])?.what, 'gives no answer in time');
});

test('recipients that are not there, and one mishap in hundreds, are no trouble of a channel', (t) => {
  t.is(
    errorAfter([
      ['refused:unreachable:131026', 9],
      ['accepted', 1],
    ]),
    null,
  );
  t.is(
    errorAfter([
      ['refused:retry:131000', 1],
      ['accepted', 500],
    ]),
    null,
  );
  t.is(
    errorAfter([
      ['refused:retry:131000', 1],
      ['accepted', 9],
    ])?.failed,
    1,
  );
});

test('an age that what was kept does not reach back to is told as what it is at least', (t) => {
  const told = (ms: number | null, least = false) =>
    age({ oldest_age_ms: ms, oldest_age_is_least: least });
  t.deepEqual(
    [told(null), told(0), told(61_000), told(61_000, true)],
    ['–', '–', '1 min', 'over 1 min'],
  );
  const queue = { job: 'webhook.dispatch', unacked: 0, dead: 0, consumers: 1 };
  const retrying = { ...queue, ready: 0, oldest_age_ms: 0, oldest_age_is_least: false };
  const [problem] = problemsOf({ queues: [{ ...retrying, waiting: [{ seconds: 30, ready: 3 }] }] });
  t.is(problem?.text, 'webhook.dispatch: 3 jobs wait for another try.');
});

test('a process behind a proxy that the settings do not name is told of', (t) => {
  const process = {
    ...{ id: 'api@one:7', name: 'api', state: 'alive', silent_ms: 0, event_loop_p99_ms: 1 },
    ...{ connected: { redis: true, rabbitmq: true }, doing: { jobs: {} } },
    clock_offsets_ms: { redis: 0, mysql: 0 },
  };
  const about = (forwarded_ignored: boolean) =>
    problemsOf({ checks: engines, processes: [{ ...process, forwarded_ignored }] })
      .filter(({ text }) => text.includes('TRUSTED_PROXIES'))
      .map((problem) => [problem.severity, problem.about]);
  t.deepEqual(about(true), [['warning', 'forwarded api@one:7']]);
  t.deepEqual(about(false), []);
});
