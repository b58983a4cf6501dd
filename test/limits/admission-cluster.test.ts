// Admission on a real Redis Cluster: slot by slot, exact undo, never beyond a limit.
import test from 'ava';
import { closeRedis, type RedisClient, RedisUnavailable } from '../../lib/infra/redis.ts';
import { type AdmissionRequest, createAdmission } from '../../lib/limits/admission.ts';
import { standardTier, tier5000 } from '../../lib/limits/rules.ts';
import { startRedisCluster, type TestCluster } from '../support/redis-cluster.ts';
import { connectTo, contentsUnder, keysUnder } from '../support/redis-server.ts';
import { createModel } from './model.ts';

let one: TestCluster | undefined;
let redis: RedisClient;
test.before(async () => {
  one = await startRedisCluster();
  redis = await connectTo(one.url);
});
test.after.always(async () => {
  if (redis !== undefined) await closeRedis(redis);
  await one?.stop();
});

const base: AdmissionRequest = {
  ...{ operation: 'send', accountId: 'acc', keyId: 'key', mode: 'live', phoneKey: 'f00d' },
  tier: standardTier,
};

test('a call of every kind works, and every key of a script lies in one slot', async (t) => {
  const prefix = 'kinds:';
  const admission = createAdmission({ redis, prefix });
  t.true((await admission.admit(base)).admitted);
  t.true((await admission.admit({ ...base, operation: 'verify' })).admitted);
  t.true((await admission.admit({ ...base, phoneKey: 'x', tier: tier5000 })).admitted);
  t.true((await admission.admitPlayground({ phoneKey: 'y', sourceKey: '192.0.2.1' })).admitted);
  const again = await admission.admit(base);
  t.is(again.admitted ? null : again.refusal.name, 'resend');
  t.is((await admission.usage(base))[0]?.used, 1);
  const tags = (await keysUnder(redis, prefix)).map((key) => /\{(.*)\}/.exec(key)?.[1] ?? '');
  t.deepEqual([...new Set(tags)].toSorted(), [
    ...['a:l:acc', 'ap:l:acc:f00d', 'ap:l:acc:x', 'i:192.0.2.1', 'p:l:f00d', 'p:l:x', 'p:l:y'],
  ]);
});

test('a refusal by a later slot takes back exactly what the earlier ones took', async (t) => {
  let now = 1_800_000_000_000;
  const prefix = 'undo:';
  const admission = createAdmission({ redis, prefix, nowMs: () => now });
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, index) =>
      admission.admit({ ...base, phoneKey: `p${index}`, keyId: `k${index % 3}` }),
    ),
  );
  t.true(answers.every(({ admitted }) => admitted));
  now += 1_000;
  // A phone that others have reached: its log has entries of its own to keep.
  t.true((await admission.admit({ ...base, accountId: 'other' })).admitted);
  const before = await contentsUnder(redis, prefix);
  const refused = await admission.admit(base);
  t.is(refused.admitted ? null : refused.refusal.name, 'burst');
  t.is(refused.admitted ? null : refused.refusal.retryAfterSeconds, 9);
  t.deepEqual(await contentsUnder(redis, prefix), before);
});

test('a playground send refused by its address leaves both logs of the phone as they were', async (t) => {
  const prefix = 'playground:';
  const now = 1_800_000_000_000;
  const admission = createAdmission({ redis, prefix, nowMs: () => now });
  const play = (phoneKey: string) =>
    admission.admitPlayground({ phoneKey, sourceKey: '192.0.2.1' });
  for (let call = 0; call < 20; call += 1) t.true((await play(`p${call}`)).admitted);
  const before = await contentsUnder(redis, prefix);
  const refused = await play('late');
  t.is(refused.admitted ? null : refused.refusal.name, 'source_ip');
  t.deepEqual(await contentsUnder(redis, prefix), before);
});

test('the longest wait is found across slots, and obeying it is enough', async (t) => {
  let now = 1_800_000_000_000;
  const admission = createAdmission({ redis, prefix: 'longest:', nowMs: () => now });
  for (let call = 0; call < 6; call += 1) {
    t.true((await admission.admit({ ...base, accountId: `a${call}` })).admitted);
  }
  // The first slot asks for 30 s, the second for 600.
  const refused = await admission.admit({ ...base, accountId: 'a0' });
  t.is(refused.admitted ? null : refused.refusal.name, 'recipient_10m');
  t.is(refused.window.length, 3, 'the account is reported all the same');
  now += refused.admitted ? 0 : refused.refusal.retryAfterSeconds * 1_000;
  t.true((await admission.admit({ ...base, accountId: 'a0' })).admitted);
});

test('call by call it decides as the plain model', async (t) => {
  let now = 1_800_000_000_000;
  const admission = createAdmission({ redis, prefix: 'model:', nowMs: () => now });
  const model = createModel();
  for (let call = 0; call < 200; call += 1) {
    now += (call * 7_919) % 45_000;
    const request = {
      ...base,
      ...{ accountId: `a${call % 2}`, keyId: `k${call % 3}`, phoneKey: `p${(call * 31) % 4}` },
    };
    const answer = await admission.admit(request);
    t.is(answer.admitted ? null : answer.refusal.name, model.admit(request, now).refusedBy);
  }
});

test('200 at once never go beyond a limit, and what lost is taken back', async (t) => {
  const now = 1_800_000_000_000;
  const prefix = 'parallel:';
  const admission = createAdmission({ redis, prefix, nowMs: () => now });
  const answers = await Promise.all(
    Array.from({ length: 200 }, (_, index) =>
      admission.admit({ ...base, phoneKey: `p${index}`, keyId: `k${index % 7}` }),
    ),
  );
  t.is(answers.filter(({ admitted }) => admitted).length, 100);
  const phones = (await keysUnder(redis, prefix)).filter((key) => key.includes('{p:'));
  t.is(phones.length, 100);
});

test('a node that dies between two slots: RedisUnavailable, and the earlier slot is free again', async (t) => {
  const two = await startRedisCluster(2);
  t.teardown(() => two.stop());
  const client = await connectTo(two.url, { commandTimeoutMs: 1_000 });
  t.teardown(() => closeRedis(client));
  const admission = createAdmission({ redis: client, prefix: 'two:' });
  // A phone whose own slot lies on the other node than its slot with the account.
  const nodesOf = async (phoneKey: string) => ({
    phoneKey,
    pair: await two.nodeOf(`{ap:l:acc:${phoneKey}}`),
    phone: await two.nodeOf(`{p:l:${phoneKey}}`),
  });
  const candidates = await Promise.all(Array.from({ length: 64 }, (_, at) => nodesOf(`p${at}`)));
  const split = candidates.find(({ pair, phone }) => pair.port !== phone.port);
  if (split === undefined) return t.fail();
  t.true((await admission.admit({ ...base, phoneKey: 'warm-up' })).admitted);

  await split.phone.kill();
  const call = { ...base, phoneKey: split.phoneKey };
  await t.throwsAsync(admission.admit(call), { instanceOf: RedisUnavailable });
  const left = await connectTo(split.pair.url);
  t.teardown(() => closeRedis(left));
  t.deepEqual(await keysUnder(left, `two:lim:{ap:l:acc:${split.phoneKey}}`), []);
});
