// Refusing from memory: what a process knows of held prefixes, with Redis there and away, and what a refusal says.
import test from 'ava';
import { closeRedis, RedisUnavailable } from '../../lib/infra/redis.ts';
import { ServiceError } from '../../lib/kernel/errors.ts';
import type { LogFields } from '../../lib/kernel/log.ts';
import { silentLog } from '../../lib/kernel/log.ts';
import { createHeldPrefixes } from '../../lib/pumping/held.ts';
import { createPumpingGuard, type GuardDeps } from '../../lib/pumping/refuse.ts';
import { parseAllowed } from '../../lib/pumping/rules.ts';
import { createPumpingStore, type HeldPrefix, type HeldSet } from '../../lib/pumping/store.ts';
import { connectTo, startRedisServer, until } from '../support/redis-server.ts';
import { start } from './evidence.ts';
import { hour, prefixKey, recipients } from './lane.ts';

const hold: HeldPrefix = {
  ...{ accountId: 'a1', prefixKey, prefix: '+1415*******', country: 'US' },
  ...{ level: 1, since: start, until: start + hour, settled: 30, verified: 0 },
  ...{ spent: start + hour, reason: 'unverified', early: false, accounts: 1 },
  together: { settled: 30, verified: 0 },
};
const live = { accountId: 'a1', mode: 'live' } as const;
const phone = '+14155550123';

// A guard looks again and again for as long as it is not stopped.
const guards: { stop(): void }[] = [];
test.after.always(() => {
  for (const guard of guards) guard.stop();
});

const createGuard = async (change: Partial<GuardDeps> = {}) => {
  const clock = { time: start + 10 * 60_000 - 1 };
  const lines: LogFields[] = [];
  const held = createHeldPrefixes({
    store: { heldSince: () => Promise.resolve({ epoch: 'e', holds: [hold] }) },
    log: silentLog,
  });
  const guard = createPumpingGuard({
    ...{ held, recipients, mode: () => 'enforce', allowed: parseAllowed('', '') },
    clock: { now: () => clock.time },
    log: { ...silentLog, info: (fields) => lines.push(fields) },
    ...change,
  });
  await guard.start();
  guards.push(guard);
  return { ...guard, clock, lines };
};

test('a held prefix is refused with the wait that is left; the account’s others, others’ and the sandbox pass', async (t) => {
  const guard = await createGuard();
  const refused = t.throws(() => guard.check(live, phone), { instanceOf: ServiceError });
  t.is(refused.code, 'RATE_LIMIT_EXCEEDED');
  t.deepEqual(refused.extras, {
    ...{ reason: 'fraud_protection', layer: 'origin', dimension: 'recipient_prefix' },
    ...{ retry_after_seconds: 3_001, window_seconds: 3_600, limit: 30 },
    reset_at: new Date(guard.clock.time + 3_001_000).toISOString(),
  });
  t.throws(() => guard.check(live, '+14155559999'));
  t.notThrows(() => guard.check(live, '+14155560123'));
  t.notThrows(() => guard.check({ ...live, accountId: 'a2' }, phone));
  t.notThrows(() => guard.check({ ...live, mode: 'test' }, phone));
  guard.clock.time = hold.until;
  t.notThrows(() => guard.check(live, phone), 'the hold is over');
  guard.stop();
});

test('the allow-list, shadow mode and off let a held prefix pass; only shadow says so, masked', async (t) => {
  for (const allowed of [parseAllowed('a1', ''), parseAllowed('', '+1415')]) {
    const guard = await createGuard({ allowed });
    t.notThrows(() => guard.check(live, phone));
    guard.stop();
  }
  const off = await createGuard({ mode: () => 'off' });
  t.notThrows(() => off.check(live, phone));
  const shadow = await createGuard({ mode: () => 'shadow' });
  t.notThrows(() => shadow.check(live, phone));
  t.deepEqual(shadow.lines, [{ account_id: 'a1', country: 'US', prefix: '+1415*******' }]);
  shadow.stop();
  t.deepEqual(off.lines, []);
});

test('a process hears of holds within its period, keeps them while Redis is away, and a new Redis has none', async (t) => {
  const server = await startRedisServer();
  const redis = await connectTo(server.url, { commandTimeoutMs: 200 });
  const store = createPumpingStore(redis, 'held:');
  let unavailable = 0;
  const heldSince = async (epoch: string | undefined): Promise<HeldSet | undefined> => {
    try {
      return await store.heldSince(epoch);
    } catch (error) {
      if (error instanceof RedisUnavailable) unavailable++;
      throw error;
    }
  };
  const held = createHeldPrefixes({ store: { heldSince }, log: silentLog, everyMs: 20 });
  try {
    await held.start();
    t.is(held.of('a1'), undefined);
    await store.publish(hold, start);
    await until(() => held.of('a1') !== undefined);
    t.deepEqual(held.of('a1')?.get(prefixKey), hold);
    await server.kill();
    await until(() => unavailable > 2);
    t.deepEqual(held.of('a1')?.get(prefixKey), hold);
    await server.restart();
    await until(() => held.of('a1') === undefined);
  } finally {
    held.stop();
    await closeRedis(redis);
    await server.stop();
  }
});
