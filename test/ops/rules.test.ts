// What figures mean: rates, ages and folded minutes, against a queue that is simulated job by job.
import test from 'ava';
import * as fc from 'fast-check';
import { maskPayload, readPayload } from '../../lib/ops/mask.ts';
import {
  columnsOf,
  foldMinute,
  nextSample,
  oldestAge,
  type Sampled,
  settledBetween,
} from '../../lib/ops/rules.ts';

const job = 'mail';
const step = 5_000;

/** Runs a queue second by second; answers the samples it gives every five, and how old the oldest really is then. */
const simulate = (seconds: readonly { come: number; go: number }[]) => {
  const waiting: number[] = [];
  const history: Sampled[] = [];
  const ages: { told: number; real: number }[] = [];
  let settled = 0;
  seconds.forEach(({ come, go }, second) => {
    const at = (second + 1) * 1_000;
    for (let n = 0; n < come; n++) waiting.push(at - 1_000 + (n * 1_000) / come);
    settled += waiting.splice(0, go).length;
    if (at % step !== 0) return;
    const last = history.at(-1);
    const lastSample = last?.jobs[job];
    const bare = nextSample(
      last && lastSample && { at: last.at, sample: lastSample },
      { at, ready: waiting.length, unacked: 0, waiting: 0, dead: 0 },
      settled,
    );
    settled = 0;
    const age = oldestAge(history, job, { at, sample: bare });
    ages.push({ told: age, real: waiting.length === 0 ? 0 : at - (waiting[0] ?? at) });
    history.push({ at, jobs: { [job]: { ...bare, age } } });
  });
  return { history, ages };
};

test('the age told is that of the oldest job, to a sample, whatever comes and goes', async (t) => {
  const second = fc.record({
    come: fc.integer({ min: 0, max: 40 }),
    go: fc.integer({ min: 0, max: 40 }),
  });
  await fc.assert(
    fc.property(fc.array(second, { minLength: 5, maxLength: 120 }), (seconds) => {
      for (const { told, real } of simulate(seconds).ages.slice(1)) {
        if (Math.abs(told - real) > step) return false;
        if ((told === 0) !== (real === 0) && real !== 0) return false;
      }
      return true;
    }),
  );
  t.pass();
});

test('a queue that nobody takes grows older by the second', (t) => {
  const { ages } = simulate(
    Array.from({ length: 60 }, (_, n) => ({ come: n < 10 ? 5 : 0, go: 0 })),
  );
  t.deepEqual(
    ages.slice(1).map(({ told, real }) => Math.abs(told - real) <= step),
    Array(11).fill(true),
  );
  t.true((ages.at(-1)?.told ?? 0) >= 55_000);
});

test('rates are what came and went between two samples', (t) => {
  const { history } = simulate(Array.from({ length: 20 }, () => ({ come: 30, go: 10 })));
  t.like(history.at(-1)?.jobs[job], { in: 30, out: 10, ready: 400 });
});

test('a process that is new counts from its start, and one that is gone takes nothing away', (t) => {
  const told = (entries: Record<string, number>) =>
    new Map(
      Object.entries(entries).map(([id, count]) => [id, { at: 0, handled: { mail: count } }]),
    );
  t.deepEqual(settledBetween(told({ a: 5 }), told({ a: 9, b: 2 })), { mail: 6 });
  t.deepEqual(settledBetween(told({ a: 5, b: 3 }), told({ a: 5 })), { mail: 0 });
  t.deepEqual(settledBetween(told({ a: 5 }), told({ a: 0 })), { mail: 0 });
});

test('a minute is its highest levels and its mean rates', (t) => {
  const { history } = simulate(
    Array.from({ length: 60 }, (_, n) => ({ come: n < 30 ? 10 : 0, go: n < 30 ? 0 : 10 })),
  );
  const minute = foldMinute(history);
  t.like(minute?.jobs[job], { ready: 300 });
  t.is(minute?.at, 60_000);
  t.is(foldMinute([]), undefined);
  const columns = columnsOf(history);
  t.is(columns.at.length, 12);
  t.deepEqual(columns.jobs[job]?.ready?.slice(0, 3), [50, 100, 150]);
});

test('a payload is shown without codes, secrets and whole numbers', (t) => {
  const shown = maskPayload({
    message: {
      id: '0192f0c1-7a3b-7c4d-8e5f-0123456789ab',
      phone: '+14155550123',
      request_id: 'req-1',
      price_micros: 50_000,
    },
    ...{
      sealed_code: 'v1.k1.abc',
      tried: ['whatsapp'],
      reason: null,
      late: false,
      chat_id: 123456789,
    },
    events: [
      { type: 'otp.sent', data: { to: 'call +14155550123', code: '123456', token_hash: 'ab' } },
    ],
  });
  t.deepEqual(shown, {
    message: {
      id: '0192f0c1-7a3b-7c4d-8e5f-0123456789ab',
      phone: '+1415*****23',
      request_id: 'req-1',
      price_micros: 50_000,
    },
    ...{ sealed_code: '***', tried: ['whatsapp'], reason: null, late: false, chat_id: '***' },
    events: [{ type: 'otp.sent', data: { to: 'call ***', code: '***', token_hash: '***' } }],
  });
  t.deepEqual(readPayload(Buffer.from('{"half')), { unreadable_bytes: 6 });
});
