// The pace of a webhook worker: what ended but is not written, and a busy process, hold back what comes next.
import test from 'ava';
import { silentLog } from '../../lib/kernel/log.ts';
import type { Attempted } from '../../lib/webhooks/attempt.ts';
import type { Endpoint, Noted } from '../../lib/webhooks/endpoint-store.ts';
import { createPace } from '../../lib/webhooks/pace.ts';
import { createRecorder } from '../../lib/webhooks/record.ts';
import type { WebhookStore } from '../../lib/webhooks/store.ts';

const settled = (promise: Promise<unknown>): Promise<boolean> =>
  Promise.race([promise.then(() => true), new Promise<false>((done) => setImmediate(done, false))]);

const used =
  (utilization: number, ms = 100) =>
  () => ({
    ...{ active: ms * utilization, idle: ms * (1 - utilization), utilization },
  });

test('a busy process takes nothing more while it has enough under way', async (t) => {
  let running = 65;
  const pace = createPace({
    running: () => running,
    written: async () => undefined,
    utilization: used(0.95),
  });
  const ready = pace.ready();
  t.false(await settled(ready));
  running = 64;
  await ready;
  t.true(await settled(pace.ready()));
});

test('a process with time to spare takes what comes, however much it waits for others', async (t) => {
  const given = { running: () => 1_000, written: async () => undefined };
  t.true(await settled(createPace({ ...given, utilization: used(0.5) }).ready()));
  t.true(await settled(createPace({ ...given, utilization: used(1, 5) }).ready()), 'too short');
});

test('a process that waits and finds itself at leisure goes on, whatever is under way', async (t) => {
  let part = 1;
  const pace = createPace({
    ...{ running: () => 1_000, written: async () => undefined },
    utilization: () => used(part)(),
  });
  const ready = pace.ready();
  t.false(await settled(ready));
  part = 0.5;
  const startedAt = performance.now();
  await ready;
  t.true(performance.now() - startedAt < 200);
});

test('attempts that hang hold a busy process up for a moment only', async (t) => {
  const given = { running: () => 1_000, written: async () => undefined };
  await createPace({ ...given, utilization: used(1) }).ready();
  t.pass();
});

const endpoint: Endpoint = {
  ...{ accountId: 'a', url: 'https://a.example/', disabled: false, changedAt: 0 },
  ...{ failingSince: null, pausedUntil: null },
  secrets: { present: null, before: null, beforeUntil: 0 },
};
const attempted = {
  recorded: { to: { status: 'delivered' } },
  result: { ok: true },
} as unknown as Attempted;

const nothing = async () => new Map();
const noting = { noteHealthy: nothing, noteFailures: nothing, notePauses: nothing };

test('attempts that MySQL has not taken yet are bounded: until then nothing new is begun', async (t) => {
  const writing = Promise.withResolvers<void>();
  const webhooks = { ...noting, record: () => writing.promise };
  const recorder = createRecorder({
    webhooks: webhooks as unknown as WebhookStore,
    ...{ clock: { now: () => 0 }, log: silentLog, forget: () => undefined },
  });
  const added = Array.from({ length: 100 }, () => recorder.add(endpoint, attempted));
  t.true(await settled(recorder.caughtUp()), 'a hundred is nothing');
  added.push(...Array.from({ length: 200 }, () => recorder.add(endpoint, attempted)));
  const caughtUp = recorder.caughtUp();
  t.false(await settled(caughtUp));
  writing.resolve();
  await caughtUp;
  await Promise.all(added);
  t.true(await settled(recorder.caughtUp()));
});

test('attempts that MySQL refuses hold nothing up for ever', async (t) => {
  const webhooks = { ...noting, record: () => Promise.reject(new Error('gone')) };
  const recorder = createRecorder({
    webhooks: webhooks as unknown as WebhookStore,
    ...{ clock: { now: () => 0 }, log: silentLog, forget: () => undefined },
  });
  const added = Array.from({ length: 300 }, () => recorder.add(endpoint, attempted));
  await Promise.all([Promise.allSettled(added), recorder.caughtUp()]);
  t.pass();
});

test('what is given up is the address that asked for it, not the one before it in the same group', async (t) => {
  const disabled: unknown[] = [];
  const webhooks = {
    ...{ ...noting, record: nothing },
    disable: async (...args: unknown[]) => void disabled.push(args),
  };
  const recorder = createRecorder({
    webhooks: webhooks as unknown as WebhookStore,
    ...{ clock: { now: () => 0 }, log: silentLog, forget: () => undefined },
  });
  const gone = { ...attempted, result: { ok: false }, giveUp: 'gone' } as unknown as Attempted;
  const now = { ...endpoint, changedAt: 1 };
  await Promise.all([recorder.add(endpoint, attempted), recorder.add(now, gone)]);
  t.deepEqual(disabled, [[now, 0, 'gone']]);
});

test('what many endpoints that fail are noted with is one statement, so that nobody waits for them', async (t) => {
  const noted: (readonly Noted[])[] = [];
  const written: number[] = [];
  const webhooks = {
    ...noting,
    noteFailures: async (failed: readonly Noted[]) => {
      noted.push(failed);
      return new Map();
    },
    record: async (all: readonly unknown[]) => void written.push(all.length),
  };
  const recorder = createRecorder({
    webhooks: webhooks as unknown as WebhookStore,
    ...{ clock: { now: () => 0 }, log: silentLog, forget: () => undefined },
  });
  const failing = { ...attempted, result: { ok: false, counts: true } } as unknown as Attempted;
  const of = (accountId: string, result: Attempted) =>
    recorder.add({ ...endpoint, accountId }, result);
  await Promise.all([
    ...Array.from({ length: 150 }, (_, n) => of(`dead ${n % 75}`, failing)),
    ...[of('mixed', failing), of('mixed', attempted), of('well', attempted)],
  ]);
  t.is(noted.length, 1);
  t.is(noted[0]?.length, 75, 'one that took something is in no trouble');
  t.is(noted[0]?.find(({ accountId }) => accountId === 'dead 7')?.value, 2);
  t.deepEqual(written, [153]);
});
