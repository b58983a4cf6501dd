// Reading dead letters: ours, the broker's, and such as nobody planned for.
import test from 'ava';
import { readDead } from '../../../lib/infra/queue/dead.ts';

const own = {
  ...{ attempt: 3, first_published: 1_000, first_failed_at: 2_000, failed_at: 9_000 },
  ...{ reason: 'attempts_exhausted', first_error: 'first', last_error: 'last' },
  ...{ queue: 'mail.again', request_id: 'r' },
};

test('a letter of ours', (t) => {
  t.deepEqual(readDead(own), {
    ...{ reason: 'attempts_exhausted', attempts: 3, firstError: 'first', lastError: 'last' },
    ...{ firstPublishedAtMs: 1_000, firstFailedAtMs: 2_000, deadAtMs: 9_000 },
    ...{ queue: 'mail.again', requestId: 'r', byBroker: false },
  });
});

test('a job the broker gave up on its second attempt: its word counts, our history stays', (t) => {
  const letter = readDead({
    ...{ ...own, attempt: 2, reason: 'busy' },
    'x-death': [
      {
        reason: 'delivery_limit',
        queue: 'mail.again',
        count: 1,
        time: { '!': 'timestamp', value: 12 },
      },
      { reason: 'expired', queue: 'mail.wait.1s', count: 1, time: { '!': 'timestamp', value: 10 } },
    ],
  });
  t.like(letter, { reason: 'delivery_limit', queue: 'mail.again', deadAtMs: 12_000 });
  t.like(letter, { attempts: 2, firstError: 'first', lastError: 'last', byBroker: true });
});

test('the ladder’s own traces are no death', (t) => {
  const letter = readDead({ ...own, 'x-death': [{ reason: 'expired', queue: 'mail.wait.1s' }] });
  t.like(letter, { reason: 'attempts_exhausted', byBroker: false });
});

test('a letter from nowhere is readable too', (t) => {
  for (const headers of [undefined, {}, { 'x-death': 'odd' }, { 'x-death': [null, 3] }]) {
    t.like(readDead(headers), { attempts: 1, queue: undefined });
  }
  t.is(readDead({}).reason, 'unknown');
});
