// Idempotency records on a real Redis: one owner at a time, whatever dies, pauses or arrives together.
import test from 'ava';
import fc from 'fast-check';
import {
  type Beginning,
  type BeginRequest,
  createIdempotency,
  type IdempotencyToken,
  keepMs,
} from '../../lib/idempotency/store.ts';
import { closeRedis, createRedis, RedisUnavailable } from '../../lib/infra/redis.ts';
import { silentLog } from '../../lib/kernel/log.ts';
import {
  contentsUnder,
  keysUnder,
  openTestRedis,
  type TestRedis,
} from '../support/redis-server.ts';

let server: TestRedis;
test.before(async () => {
  server = await openTestRedis();
});
test.after.always(() => server.close());

const lockMs = 30_000;

const answer = {
  status: 200,
  requestId: 'req_1',
  data: { message_id: 'otp_1', status: 'sent', expires_in: 300, note: 'ünï "quoted" \n' },
};
const base: BeginRequest = {
  ...{ accountId: 'acc', mode: 'live', key: 'order-17' },
  ...{ fingerprint: 'ab'.repeat(32), messageId: 'otp_1' },
};

const createLane = (name: string) => {
  let now = 1_700_000_000_000;
  const prefix = `${server.prefix}${name}:`;
  const idempotency = createIdempotency({ redis: server.redis, prefix, nowMs: () => now });
  return {
    ...idempotency,
    prefix,
    pass: (ms: number) => {
      now += ms;
    },
    start: (change: Partial<BeginRequest> = {}) => idempotency.begin({ ...base, ...change }),
  };
};

/** The token of a beginning that owns the key. Throws for any other. */
const tokenOf = (beginning: Beginning): IdempotencyToken => {
  if (beginning.kind === 'new' || beginning.kind === 'takeover') return beginning.token;
  throw new Error(`not an owner: ${beginning.kind}`);
};

test('50 at once: one goes on, the others are told that it is in progress', async (t) => {
  const { start } = createLane('parallel');
  const all = await Promise.all(
    Array.from({ length: 50 }, (_, index) => start({ messageId: `otp_${index}` })),
  );
  t.is(all.filter(({ kind }) => kind === 'new').length, 1);
  t.is(all.filter(({ kind }) => kind === 'in_progress').length, 49);
});

test('a finished answer is replayed as it was, for 24 hours from its completion', async (t) => {
  const { start, complete, prefix, pass } = createLane('replay');
  const token = tokenOf(await start());
  const [key = ''] = await keysUnder(server.redis, prefix);
  await server.redis.pexpire(key, keepMs / 2);
  pass(20_000);
  t.true(await complete(token, answer));
  t.deepEqual(await start({ messageId: 'otp_2' }), { kind: 'replay', answer });
  pass(lockMs);
  t.deepEqual(await start({ messageId: 'otp_2' }), { kind: 'replay', answer });
  const left = await server.redis.pttl(key);
  t.true(left > keepMs - 60_000 && left <= keepMs);
});

test('another request under the same key is a mismatch, whatever the state', async (t) => {
  const { start, complete, pass } = createLane('mismatch');
  const other = { fingerprint: 'cd'.repeat(32) };
  const token = tokenOf(await start());
  t.deepEqual(await start(other), { kind: 'mismatch' });
  pass(lockMs + 1);
  t.deepEqual(await start(other), { kind: 'mismatch' });
  t.true(await complete(token, answer));
  t.deepEqual(await start(other), { kind: 'mismatch' });
});

test('accounts and modes do not meet', async (t) => {
  const { start } = createLane('scope');
  const kinds = await Promise.all([
    ...[start(), start({ mode: 'test' }), start({ key: 'order-18' })],
    createLane('scope').begin({ ...base, accountId: 'other' }),
  ]);
  t.deepEqual(
    kinds.map(({ kind }) => kind),
    ['new', 'new', 'new', 'new'],
  );
});

test('a silent owner is taken over after 30 seconds, with the message id it recorded', async (t) => {
  const { start, pass } = createLane('takeover');
  t.is((await start()).kind, 'new');
  pass(lockMs - 1);
  t.is((await start({ messageId: 'otp_2' })).kind, 'in_progress');
  pass(1);
  const taken = await start({ messageId: 'otp_2' });
  t.is(taken.kind, 'takeover');
  t.is(taken.kind === 'takeover' && taken.messageId, 'otp_1');
  t.is((await start({ messageId: 'otp_3' })).kind, 'in_progress', 'locked anew');
  pass(lockMs);
  const again = await start({ messageId: 'otp_3' });
  t.is(again.kind === 'takeover' && again.messageId, 'otp_1');
});

test('50 takeovers at once: one wins', async (t) => {
  const { start, pass } = createLane('takeovers');
  await start();
  pass(lockMs);
  const all = await Promise.all(Array.from({ length: 50 }, () => start()));
  t.is(all.filter(({ kind }) => kind === 'takeover').length, 1);
  t.is(all.filter(({ kind }) => kind === 'in_progress').length, 49);
});

test('an owner that was paused changes nothing of its successor', async (t) => {
  const { start, complete, release, unlock, renewMessageId, pass, prefix } = createLane('paused');
  const paused = tokenOf(await start());
  pass(lockMs);
  const successor = tokenOf(await start());
  const before = await contentsUnder(server.redis, prefix);
  t.false(await complete(paused, { ...answer, requestId: 'late' }));
  t.false(await release(paused));
  t.false(await unlock(paused));
  t.false(await renewMessageId(paused, 'otp_9'));
  t.deepEqual(await contentsUnder(server.redis, prefix), before);
  t.true(await complete(successor, answer));
  t.false(await release(paused));
  t.false(await release(successor), 'finished is finished');
  t.deepEqual(await start(), { kind: 'replay', answer });
});

test('a paused owner finds nothing where its successor has let go', async (t) => {
  const { start, complete, release, pass } = createLane('paused-released');
  const paused = tokenOf(await start());
  pass(lockMs);
  t.true(await release(tokenOf(await start())));
  t.false(await complete(paused, answer));
  t.is((await start()).kind, 'new');
});

test('an owner that is late but not replaced may still finish', async (t) => {
  const { start, complete, pass } = createLane('late');
  const token = tokenOf(await start());
  pass(10 * lockMs);
  t.true(await complete(token, answer));
  t.is((await start()).kind, 'replay');
});

test('a released key starts afresh, with any body', async (t) => {
  const { start, release, prefix } = createLane('release');
  t.true(await release(tokenOf(await start())));
  t.deepEqual(await keysUnder(server.redis, prefix), []);
  const fresh = await start({ messageId: 'otp_2', fingerprint: 'cd'.repeat(32) });
  t.is(fresh.kind === 'new' && fresh.messageId, 'otp_2');
});

test('an unlocked key is looked at again by the next request, under the recorded id', async (t) => {
  const { start, unlock, complete } = createLane('unlock');
  const token = tokenOf(await start());
  t.true(await unlock(token));
  t.false(await complete(token, answer), 'the lock is gone');
  const next = await start({ messageId: 'otp_2' });
  t.is(next.kind, 'takeover');
  t.is(next.kind === 'takeover' && next.messageId, 'otp_1');
});

test('a takeover may record a new message', async (t) => {
  const { start, renewMessageId, pass } = createLane('renew');
  await start();
  pass(lockMs);
  t.true(await renewMessageId(tokenOf(await start()), 'otp_2'));
  pass(lockMs);
  const next = await start({ messageId: 'otp_3' });
  t.is(next.kind === 'takeover' && next.messageId, 'otp_2');
});

test('an unfinished record is kept for a day: a retry may come late', async (t) => {
  const { start, prefix } = createLane('unfinished');
  await start();
  const [key = ''] = await keysUnder(server.redis, prefix);
  t.true((await server.redis.pttl(key)) > keepMs - 60_000);
});

test('neither the key nor the request can be read from the record', async (t) => {
  const { start, prefix } = createLane('opaque');
  await start({ key: 'secret-looking-key' });
  const [key = ''] = await keysUnder(server.redis, prefix);
  const stored = JSON.stringify([key, await server.redis.get(key)]);
  t.notRegex(stored, /secret-looking-key/);
});

type Step = { kind: 'begin' | 'complete' | 'release' | 'unlock' | 'pass'; who: number; ms: number };
const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom('begin', 'begin', 'begin', 'complete', 'release', 'unlock', 'pass'),
  who: fc.nat(2),
  ms: fc.constantFrom(1, lockMs - 1, lockMs, lockMs + 1),
});

test('in any order of calls there is one owner, and what was answered once is answered for good', async (t) => {
  let run = 0;
  const property = fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
    const lane = createLane(`any${run++}`);
    const held = new Map<number, IdempotencyToken>();
    let owner: IdempotencyToken | undefined;
    let finished = false;
    const settle = async (kind: 'complete' | 'release' | 'unlock', token: IdempotencyToken) => {
      const done = await (kind === 'complete' ? lane.complete(token, answer) : lane[kind](token));
      t.is(done, token === owner, kind);
      if (!done) return;
      owner = undefined;
      finished = kind === 'complete';
    };
    for (const { kind, who, ms } of steps) {
      const token = held.get(who);
      if (kind === 'pass') lane.pass(ms);
      else if (kind !== 'begin') await (token && settle(kind, token));
      else {
        const beginning = await lane.start();
        t.is(beginning.kind === 'replay', finished);
        if (beginning.kind !== 'new' && beginning.kind !== 'takeover') continue;
        owner = beginning.token;
        held.set(who, owner);
      }
    }
  });
  await fc.assert(property, { seed: 20_261_120, numRuns: 60, endOnFailure: true });
});

test('with Redis away a key can be neither claimed nor settled: RedisUnavailable', async (t) => {
  const redis = createRedis({ url: 'redis://127.0.0.1:1', log: silentLog });
  t.teardown(() => closeRedis(redis));
  const idempotency = createIdempotency({ redis, prefix: 'x:' });
  const token = { keyHash: 'ab'.repeat(32), owner: 'me' };
  await t.throwsAsync(idempotency.begin(base), { instanceOf: RedisUnavailable });
  await t.throwsAsync(idempotency.complete(token, answer), { instanceOf: RedisUnavailable });
});
