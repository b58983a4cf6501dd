// What follows a handler on a real broker: done, another attempt after a while, or dead with the reason.
import test from 'ava';
import { readDead } from '../../../lib/infra/queue/dead.ts';
import type { Meta, Outcome } from '../../../lib/infra/queue/message.ts';
import { aJob, createRig, keptLog, named, type Rig, until, type Work, work } from './rig.ts';

let rig: Rig;
test.before(async () => {
  rig = await createRig('outcomes');
});
test.after.always(() => rig?.close());

type Seen = { payload: Work; meta: Meta; at: number };

/** A handler that answers by the turn and keeps what it was given. */
const scripted = (answer: (meta: Meta) => Outcome) => {
  const seen: Seen[] = [];
  const handle = async (payload: Work, meta: Meta): Promise<Outcome> => {
    seen.push({ payload, meta, at: performance.now() });
    return answer(meta);
  };
  return { seen, handle };
};

test('a done job is gone, and its handler knew everything about it', async (t) => {
  const job = aJob('outcomes.done', { retrySeconds: [1, 2] });
  const broker = await rig.broker([job]);
  const { seen, handle } = scripted(() => ({ kind: 'done' }));
  await broker.consume(job, handle);
  const publishedAt = Date.now();
  const options = { messageId: 'm1', requestId: 'r1', replyTo: 'q1', correlationId: 'c1' };
  await broker.publish(job, work(4), { ...options, deadlineMs: publishedAt + 60_000 });
  await until(() => broker.stats()['outcomes.done.done'] === 1);
  t.like(seen[0]?.payload, { number: 4 });
  t.like(seen[0]?.meta, { ...options, attempt: 1, lastAttempt: false, redelivered: false });
  t.like(seen[0]?.meta, { deadlineMs: publishedAt + 60_000, firstError: undefined });
  t.true(Math.abs((seen[0]?.meta.firstPublishedAtMs ?? 0) - publishedAt) < 5_000);
  await broker.close();
  const again = await rig.broker([job]);
  t.is((await again.depth('outcomes.done')).ready, 0);
});

test('a retried job keeps who it is, and waits no less than its rung', async (t) => {
  const job = aJob('outcomes.retry', { retrySeconds: [1, 2] });
  const broker = await rig.broker([job]);
  const { seen, handle } = scripted(({ attempt }) =>
    attempt < 3 ? { kind: 'retry', reason: `trouble ${attempt}` } : { kind: 'done' },
  );
  await broker.consume(job, handle);
  const options = { messageId: 'm2', requestId: 'r2', replyTo: 'q2', correlationId: 'c2' };
  const deadlineMs = Date.now() + 60_000;
  await broker.publish(job, work(9), { ...options, deadlineMs });
  await until(() => broker.stats()['outcomes.retry.done'] === 1);
  t.deepEqual(
    seen.map(({ meta }) => [meta.attempt, meta.lastAttempt, meta.firstError]),
    [
      [1, false, undefined],
      [2, false, 'trouble 1'],
      [3, true, 'trouble 1'],
    ],
  );
  for (const { payload, meta } of seen) {
    t.deepEqual(payload, { number: 9 });
    t.like(meta, { ...options, deadlineMs });
    t.is(meta.firstPublishedAtMs, seen[0]?.meta.firstPublishedAtMs ?? 0);
  }
  const [first = 0, second = 0] = seen.slice(1).map(({ at }, turn) => at - (seen[turn]?.at ?? 0));
  t.true(first >= 990, `${first}`);
  t.true(second >= 1_990, `${second}`);
});

test('a wished delay takes the smallest rung that is long enough', async (t) => {
  const job = aJob('outcomes.wish', { retrySeconds: [1, 2, 30] });
  const broker = await rig.broker([job]);
  const wishes: Record<number, number> = { 1: 2, 2: 3, 3: 500 };
  const { handle } = scripted(({ messageId }) => {
    const afterSeconds = wishes[Number(messageId)] ?? 0;
    return { kind: 'retry', reason: 'busy', afterSeconds };
  });
  await broker.consume(job, handle);
  for (const messageId of ['1', '2', '3']) await broker.publish(job, work(), { messageId });
  const two = await rig.take('outcomes.wish.wait.2s');
  t.is(two.properties.messageId, '1');
  const thirty = [
    await rig.take('outcomes.wish.wait.30s'),
    await rig.take('outcomes.wish.wait.30s'),
  ];
  t.deepEqual(thirty.map(({ properties }) => properties.messageId).sort(), ['2', '3']);
  t.like(two.properties.headers, { attempt: 2, reason: 'busy', queue: 'outcomes.wish' });
});

test('the broker’s own headers are not carried on: it would take them for its own again', async (t) => {
  const job = aJob('outcomes.headers', { retrySeconds: [1, 30] });
  const broker = await rig.broker([job]);
  const { handle } = scripted(() => ({ kind: 'retry', reason: 'busy' }));
  await broker.consume(job, handle);
  await broker.publish(job, work(), named());
  // It has been through the ladder once, where the broker noted its death.
  const { headers = {} } = (await rig.take('outcomes.headers.wait.30s')).properties;
  t.is(headers.attempt, 3);
  t.false(Object.keys(headers).some((name) => /^x-(first-)?death/.test(name)));
});

test('a poison job is dead with its first and its last error, redacted', async (t) => {
  const job = aJob('outcomes.poison', { retrySeconds: [1] });
  const broker = await rig.broker([job]);
  await broker.consume(job, (_, { attempt }) =>
    Promise.reject(new Error(`attempt ${attempt}: code 482913 to +4915123456789 failed`)),
  );
  const before = Date.now();
  await broker.publish(job, work(), { ...named(), requestId: 'r3' });
  const dead = readDead((await rig.take('outcomes.poison.dead')).properties.headers);
  t.like(dead, {
    ...{ reason: 'attempts_exhausted', attempts: 2, byBroker: false, requestId: 'r3' },
    firstError: 'Error: attempt 1: code *** to *** failed',
    lastError: 'Error: attempt 2: code *** to *** failed',
    queue: 'outcomes.poison.again',
  });
  const times = [dead.firstPublishedAtMs, dead.firstFailedAtMs, dead.deadAtMs] as number[];
  t.deepEqual(times, [...times].sort());
  t.true((times[0] ?? 0) >= before - 1_000 && (times[2] ?? 0) <= Date.now() + 1_000);
});

test('a handler that throws at once is no different, and the worker goes on', async (t) => {
  const job = aJob('outcomes.throws', { retrySeconds: [] });
  const broker = await rig.broker([job]);
  await broker.consume(job, ({ number }) => {
    if (number === 13) throw new TypeError('not a promise');
    return Promise.resolve({ kind: 'done' });
  });
  await broker.publish(job, work(13), named());
  await broker.publish(job, work(14), named());
  const dead = readDead((await rig.take('outcomes.throws.dead')).properties.headers);
  t.like(dead, {
    reason: 'attempts_exhausted',
    attempts: 1,
    lastError: 'TypeError: not a promise',
  });
  await until(() => broker.stats()['outcomes.throws.done'] === 1);
});

test('a job that is given up is dead at once, its body untouched', async (t) => {
  const job = aJob('outcomes.dead', { retrySeconds: [1] });
  const broker = await rig.broker([job]);
  const { seen, handle } = scripted(() => ({ kind: 'dead', reason: 'blocked by +14155550123' }));
  await broker.consume(job, handle);
  await broker.publish(job, work(5), named());
  const { content, properties } = await rig.take('outcomes.dead.dead');
  t.deepEqual(JSON.parse(content.toString()), { number: 5 });
  t.like(readDead(properties.headers), { reason: 'blocked by ***', attempts: 1 });
  t.is(seen.length, 1);
});

for (const [what, body] of [
  ['another shape', '{"number":"482913"}'],
  ['an unknown member', '{"number":1,"code":"482913"}'],
  ['null', 'null'],
  ['no JSON', '482913 is no JSON'],
  ['nothing at all', ''],
] as const) {
  test(`a payload that is ${what} is dead at once; no header and no log line quotes it`, async (t) => {
    const job = aJob(`outcomes.malformed.${what.replaceAll(' ', '-')}`);
    const log = keptLog();
    const broker = await rig.broker([job], { log });
    const { seen, handle } = scripted(() => ({ kind: 'done' }));
    await broker.consume(job, handle);
    const operator = await rig.operator();
    operator.publish('job', job.name, Buffer.from(body), { persistent: true });
    const { content, properties } = await rig.take(`${job.name}.dead`);
    t.is(content.toString(), body);
    t.is(readDead(properties.headers).reason, 'malformed_payload');
    t.false(JSON.stringify(properties).includes('482913'));
    t.false(log.lines.some((line) => line.includes('482913')));
    t.is(seen.length, 0);
  });
}

test('what a job’s own schema does not know as a number is not made one', async (t) => {
  const job = aJob('outcomes.strict');
  const broker = await rig.broker([job]);
  const { handle } = scripted(() => ({ kind: 'done' }));
  await broker.consume(job, handle);
  const operator = await rig.operator();
  operator.publish('job', job.name, Buffer.from('{"number":"7"}'), {});
  t.is(
    readDead((await rig.take('outcomes.strict.dead')).properties.headers).reason,
    'malformed_payload',
  );
});

test('when the caller’s deadline has passed there is no further attempt', async (t) => {
  const job = aJob('outcomes.late', { retrySeconds: [1, 2] });
  const broker = await rig.broker([job]);
  const { seen, handle } = scripted(() => ({ kind: 'retry', reason: 'busy' }));
  await broker.consume(job, handle);
  await broker.publish(job, work(), { ...named(), deadlineMs: Date.now() + 900 });
  const dead = readDead((await rig.take('outcomes.late.dead')).properties.headers);
  t.like(dead, { reason: 'deadline_passed', attempts: 2, firstError: 'busy' });
  t.is(seen.length, 2);
});

test('an engine that is away costs no attempt', async (t) => {
  class Away extends Error {}
  const job = aJob('outcomes.away', { retrySeconds: [1] });
  const broker = await rig.broker([job], { isOutage: (error) => error instanceof Away });
  let calls = 0;
  const attempts: number[] = [];
  await broker.consume(job, (_, { attempt }) => {
    attempts.push(attempt);
    return ++calls < 4 ? Promise.reject(new Away()) : Promise.resolve({ kind: 'done' });
  });
  await broker.publish(job, work(), named());
  await until(() => broker.stats()['outcomes.away.done'] === 1);
  t.deepEqual(attempts, [1, 1, 1, 1]);
});

test('a job that is taken again and again without an end is dead by the broker, and says so', async (t) => {
  const job = aJob('outcomes.crash');
  await rig.broker([job]);
  const operator = await rig.operator();
  operator.publish('job', job.name, Buffer.from('{"number":1}'), {
    ...{ persistent: true, messageId: 'm9' },
    headers: { attempt: 1, first_published: 1_700_000_000_000, request_id: 'r9' },
  });
  // As a worker that dies with the job in hand: 21 deliveries are one more than the limit.
  for (let delivery = 0; delivery < 21; delivery++) {
    operator.reject(await until(() => operator.get(job.name)), true);
  }
  const { properties } = await rig.take('outcomes.crash.dead');
  t.is(properties.messageId, 'm9');
  t.like(readDead(properties.headers), {
    ...{ reason: 'delivery_limit', byBroker: true, attempts: 1, requestId: 'r9' },
    ...{ queue: 'outcomes.crash', firstPublishedAtMs: 1_700_000_000_000, firstError: undefined },
  });
  const { deadAtMs = 0 } = readDead(properties.headers);
  t.true(Math.abs(deadAtMs - Date.now()) < 60_000);
});

test('a letter may be looked at for ever', async (t) => {
  const job = aJob('outcomes.looked');
  await rig.broker([job]);
  const operator = await rig.operator();
  operator.publish('dead', job.name, Buffer.from('{}'), { persistent: true });
  for (let look = 0; look < 60; look++) {
    operator.reject(await until(() => operator.get('outcomes.looked.dead')), true);
  }
  t.is((await rig.take('outcomes.looked.dead')).content.toString(), '{}');
});
