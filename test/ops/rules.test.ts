// What figures mean: rates, ages and folded minutes, against a queue that is simulated job by job.
import test from 'ava';
import * as fc from 'fast-check';
import { html, render } from '../../api/ops/console/html.ts';
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
      { count: settled, perSecond: settled / (step / 1_000) },
    );
    settled = 0;
    const age = oldestAge(history, job, { at, sample: bare })?.ms ?? null;
    ages.push({ told: age ?? 0, real: waiting.length === 0 ? 0 : at - (waiting[0] ?? at) });
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

test('a process that is new or began anew counts from its start, and one that is gone takes nothing away', (t) => {
  const told = (at: number, entries: Record<string, [count: number, startedAt?: number]>) =>
    new Map(
      Object.entries(entries).map(([id, [count, startedAt = 0]]) => [
        id,
        { at, startedAt, handled: { mail: count } },
      ]),
    );
  const between = (...[before, now]: Parameters<typeof settledBetween>) =>
    settledBetween(before, now).count;
  t.deepEqual(between(told(0, { a: [5] }), told(1, { a: [9], b: [2] })), { mail: 6 });
  t.deepEqual(between(told(0, { a: [5], b: [3] }), told(1, { a: [5] })), { mail: 0 });
  t.deepEqual(between(told(0, { a: [5] }), told(1, { a: [4, 1] })), { mail: 4 });
  // A container starts again under its name; its first words come two seconds later.
  const anew = settledBetween(told(0, { a: [500] }), told(12_000, { a: [20, 10_000] }));
  t.deepEqual(anew, { count: { mail: 20 }, perSecond: { mail: 10 } });
  // Words of different age: each process is measured by its own.
  const apart = new Map([...told(5_000, { a: [100] }), ...told(3_000, { b: [60] })]);
  t.deepEqual(settledBetween(told(0, { a: [0], b: [0] }), apart).perSecond, { mail: 40 });
});

test('an age nobody can know is not told, and one that is older than what was kept says so', (t) => {
  const now = { ready: 5, unacked: 0, waiting: 0, dead: 0, done: 0, in: 0, out: 0 };
  t.is(oldestAge([], job, { at: 10_000, sample: now }), null);
  t.deepEqual(oldestAge([], job, { at: 10_000, sample: { ...now, ready: 0 } }), {
    ...{ ms: 0, atLeast: false },
  });
  const kept = [{ at: 4_000, jobs: { [job]: { ...now, age: null } } }];
  t.deepEqual(oldestAge(kept, job, { at: 10_000, sample: now }), { ms: 6_000, atLeast: true });
});

test('time in which nobody looked is a hole: no minute reaches over it, no line bridges it', (t) => {
  const sample = (at: number, ready: number): Sampled => ({
    at,
    jobs: {
      [job]: { ready, unacked: 0, waiting: 0, dead: 0, done: 0, in: 0, out: 0, age: 0 },
    },
  });
  const kept = [sample(0, 900), sample(5_000, 900), sample(1_800_000, 3)];
  t.is(foldMinute(kept)?.jobs[job]?.ready, 3);
  const columns = columnsOf(kept, step);
  t.deepEqual(columns.at, [0, 5_000, 10_000, 1_800_000]);
  t.deepEqual(columns.jobs[job]?.ready, [900, 900, null, 3]);
});

test('a minute is its highest levels and its mean rates', (t) => {
  const { history } = simulate(
    Array.from({ length: 60 }, (_, n) => ({ come: n < 30 ? 10 : 0, go: n < 30 ? 0 : 10 })),
  );
  const minute = foldMinute(history);
  t.like(minute?.jobs[job], { ready: 300 });
  t.is(minute?.at, 60_000);
  t.is(foldMinute([]), undefined);
  const columns = columnsOf(history, step);
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

test('a value in a page is text, wherever it stands', (t) => {
  const hostile = `<script>x()</script>" onload='x()' &amp;`;
  const escaped = '&lt;script&gt;x()&lt;/script&gt;&quot; onload=&#39;x()&#39; &amp;amp;';
  const page = html`<p title="${hostile}">${hostile}${[hostile, html`<b>${hostile}</b>`]}</p>`;
  t.is(render(page), `<p title="${escaped}">${escaped}${escaped}<b>${escaped}</b></p>`);
});
