// The admission script against the plain model, with a clock held by the test.
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import {
  type Admission,
  type AdmissionLimits,
  type AdmissionRequest,
  createAdmission,
} from '../../lib/limits/admission.ts';
import { customTier, rowsFor } from '../../lib/limits/rules.ts';
import { contentsUnder, openTestRedis, type TestRedis } from '../support/redis-server.ts';
import { createModel } from './model.ts';

let server: TestRedis;
test.before(async () => {
  server = await openTestRedis();
});
test.after.always(() => server.close());

// Small numbers make every row bite within a few dozen calls.
const tier = customTier(7, 4);
// A round stamp: newer servers print it as 1.7e+12 unless told not to.
const start = 1_700_000_000_000;
const options = { seed: 20_261_120, numRuns: 25, endOnFailure: true };

const call = fc.record({
  operation: fc.constantFrom('send', 'deliver', 'verify'),
  accountId: fc.constantFrom('a', 'b'),
  keyId: fc.constantFrom('k', 'l'),
  mode: fc.constantFrom('live', 'live', 'live', 'test'),
  // One phone is called often, the others are many enough for the account's own limits to bite.
  phoneKey: fc.oneof(fc.constant('1'), fc.integer({ min: 2, max: 12 }).map(String)),
  tier: fc.constant(tier),
}) as fc.Arbitrary<AdmissionRequest>;

const elapsed = fc.oneof(
  { weight: 4, arbitrary: fc.constant(0) },
  { weight: 6, arbitrary: fc.integer({ min: 1, max: 12_000 }) },
  // Exactly on, one before and one after the edges of the windows.
  {
    weight: 6,
    arbitrary: fc
      .tuple(fc.constantFrom(10_000, 30_000, 60_000, 600_000), fc.constantFrom(-1, 0, 1))
      .map(([edge, off]) => edge + off),
  },
  { weight: 1, arbitrary: fc.integer({ min: 600_000, max: 90_000_000 }) },
);

type Step = {
  request: AdmissionRequest;
  elapsedMs: number;
  after: 'nothing' | 'giveBack' | 'obey';
};
const step: fc.Arbitrary<Step> = fc.record({
  request: call,
  elapsedMs: elapsed,
  after: fc.constantFrom('nothing', 'nothing', 'nothing', 'giveBack', 'obey'),
});

/** The script and the model side by side, at one clock. */
const createPair = (t: ExecutionContext, prefix: string) => {
  let now = start;
  const admission: AdmissionLimits = createAdmission({
    redis: server.redis,
    prefix,
    nowMs: () => now,
  });
  const model = createModel();

  const admitBoth = async (request: AdmissionRequest): Promise<Admission> => {
    const before = await contentsUnder(server.redis, prefix);
    const answer = await admission.admit(request);
    const expected = model.admit(request, now);
    t.is(answer.admitted ? null : answer.refusal.name, expected.refusedBy);
    for (const { name, used } of answer.window) t.is(used, model.used(name, request, now), name);
    if (answer.admitted) return answer;
    t.is(answer.refusal.retryAfterSeconds, Math.ceil(expected.waitMs / 1_000));
    t.deepEqual(await contentsUnder(server.redis, prefix), before, 'a refusal wrote something');
    return answer;
  };

  const giveBackBoth = async (request: AdmissionRequest, answer: Admission): Promise<void> => {
    if (!answer.admitted || answer.receipt === null) return;
    await admission.giveBack(answer.receipt);
    model.giveBack(request, now);
  };

  const obey = async (request: AdmissionRequest, answer: Admission): Promise<void> => {
    if (answer.admitted) return;
    now += answer.refusal.retryAfterSeconds * 1_000;
    t.true((await admitBoth(request)).admitted, 'the wait was obeyed');
  };

  return async ({ request, elapsedMs, after }: Step): Promise<void> => {
    now += elapsedMs;
    const answer = await admitBoth(request);
    if (after === 'giveBack') await giveBackBoth(request, answer);
    if (after === 'obey') await obey(request, answer);
  };
};

test('admits and refuses as the model does, with its longest wait, and a refusal writes nothing', async (t) => {
  let run = 0;
  const sequences = fc.array(step, { minLength: 30, maxLength: 60 });
  const property = fc.asyncProperty(sequences, async (steps) => {
    const play = createPair(t, `${server.prefix}m${run++}:`);
    for (const one of steps) await play(one);
  });
  await fc.assert(property, options);
});

/** Plays the steps as sends of one account and key; answers the admitted ones. */
const admittedOf = async (prefix: string, steps: readonly Step[]) => {
  let now = start;
  const admission = createAdmission({ redis: server.redis, prefix, nowMs: () => now });
  const admitted: { at: number; phoneKey: string }[] = [];
  for (const { elapsedMs, request } of steps) {
    now += elapsedMs % 40_000;
    const { phoneKey } = request;
    const answer = await admission.admit({
      ...{ operation: 'send', mode: 'live', tier },
      ...{ accountId: 'a', keyId: 'k', phoneKey },
    });
    if (answer.admitted) admitted.push({ at: now, phoneKey });
  }
  return admitted;
};

const mostIn = (windowMs: number, stamps: readonly number[]): number =>
  Math.max(
    ...stamps.map((from) => stamps.filter((at) => at >= from && at < from + windowMs).length),
  );

test('no window of its length ever holds more than a limit, wherever it begins', async (t) => {
  let run = 0;
  let full = 0;
  const sequences = fc.array(step, { minLength: 60, maxLength: 120 });
  const property = fc.asyncProperty(sequences, async (steps) => {
    const admitted = await admittedOf(`${server.prefix}w${run++}:`, steps);
    const byPhone = Object.values(Object.groupBy(admitted, ({ phoneKey }) => phoneKey));
    for (const { name, limit, windowMs, group } of rowsFor('send', tier)) {
      for (const entries of group === 'account' ? [admitted] : byPhone) {
        const most = mostIn(windowMs, entries?.map(({ at }) => at) ?? []);
        t.true(most <= limit, `${name}: ${most} in ${windowMs} ms`);
        if (most === limit) full += 1;
      }
    }
  });
  await fc.assert(property, options);
  t.true(full > 100, 'limits were reached');
});
