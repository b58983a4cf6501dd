// Limits above 1,000 are counted in buckets: against the plain model, with a clock held by the test.
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import {
  type Admission,
  type AdmissionRequest,
  createAdmission,
} from '../../lib/limits/admission.ts';
import { customTier, type Tier } from '../../lib/limits/rules.ts';
import { contentsUnder, openTestRedis, type TestRedis } from '../support/redis-server.ts';
import { createModel } from './model.ts';

let server: TestRedis;
test.before(async () => {
  server = await openTestRedis();
});
test.after.always(() => server.close());

// 1,200 a minute is counted in buckets of 1,017 ms; the burst is wide open, so that it never bites first.
const tier: Tier = { ...customTier(1_200), burst: 5_000 };
const start = 1_700_000_000_000;

type Volley = { count: number; elapsedMs: number };
const volleys: fc.Arbitrary<Volley[]> = fc.array(
  fc.record({
    count: fc.integer({ min: 1, max: 700 }),
    elapsedMs: fc.oneof(
      fc.integer({ min: 0, max: 3_000 }),
      fc.integer({ min: 0, max: 70_000 }),
      fc.constantFrom(1_016, 1_017, 1_018, 60_000, 60_003, 61_019, 61_020, 61_021),
    ),
  }),
  { minLength: 5, maxLength: 10 },
);

const createRange = (t: ExecutionContext, prefix: string) => {
  let now = start;
  let serial = 0;
  const stamps: number[] = [];
  const admission = createAdmission({ redis: server.redis, prefix, nowMs: () => now });
  const model = createModel();

  // A fresh phone and key per call leave the account's own rows to decide.
  const requestOf = (name: string): AdmissionRequest => ({
    ...{ operation: 'send', accountId: 'a', mode: 'live', tier },
    ...{ keyId: name, phoneKey: name },
  });

  const judge = (request: AdmissionRequest, answer: Admission): void => {
    const { refusedBy, waitMs } = model.admit(request, now);
    t.is(answer.admitted ? null : answer.refusal.name, refusedBy);
    if (answer.admitted) stamps.push(now);
    else t.is(answer.refusal.retryAfterSeconds, Math.ceil(waitMs / 1_000));
  };

  const fire = async (count: number): Promise<Admission | undefined> => {
    const requests = Array.from({ length: count }, () => requestOf(String(serial++)));
    const answers = await Promise.all(requests.map(admission.admit));
    for (const [index, request] of requests.entries()) judge(request, answers[index] as Admission);
    const usage = await admission.usage({ accountId: 'a', mode: 'live', tier });
    const [sustained] = usage.filter(({ name }) => name === 'sustained');
    t.is(sustained?.used, model.used('sustained', requestOf(''), now));
    return answers.at(-1);
  };

  const play = async ({ count, elapsedMs }: Volley): Promise<void> => {
    now += elapsedMs;
    const last = await fire(count);
    if (last === undefined || last.admitted) return;
    const before = await contentsUnder(server.redis, `${prefix}lim:{a:`);
    t.false((await fire(1))?.admitted);
    t.deepEqual(await contentsUnder(server.redis, `${prefix}lim:{a:`), before);
    now += last.refusal.retryAfterSeconds * 1_000;
    t.true((await fire(1))?.admitted, 'the wait was obeyed');
  };

  return { play, stamps };
};

test('a counted limit follows its buckets exactly and never holds more than the limit in a window', async (t) => {
  let run = 0;
  const property = fc.asyncProperty(volleys, async (sequence) => {
    const { play, stamps } = createRange(t, `${server.prefix}r${run++}:`);
    for (const volley of sequence) await play(volley);
    const excess = stamps.filter((at, index) => {
      const after = stamps[index + tier.sustained];
      return after !== undefined && after < at + 60_000;
    });
    t.deepEqual(excess, []);
  });
  await fc.assert(property, { seed: 20_261_120, numRuns: 5, endOnFailure: true });
});

test('a clock that steps back neither forgets nor admits too many', async (t) => {
  let now = start;
  const prefix = `${server.prefix}back:`;
  const admission = createAdmission({ redis: server.redis, prefix, nowMs: () => now });
  const admitMany = async (count: number, label: string) => {
    const answers = await Promise.all(
      Array.from({ length: count }, (_, index) =>
        admission.admit({
          ...{ operation: 'send', accountId: 'a', mode: 'live', tier },
          ...{ keyId: `${label}${index}`, phoneKey: `${label}${index}` },
        }),
      ),
    );
    return answers.filter((answer) => answer.admitted).length;
  };
  t.is(await admitMany(700, 'x'), 700);
  now -= 5_000;
  t.is(await admitMany(700, 'y'), 500);
});

test('buckets that have left the window leave the ring', async (t) => {
  let now = start;
  const prefix = `${server.prefix}left:`;
  const admission = createAdmission({ redis: server.redis, prefix, nowMs: () => now });
  for (let call = 0; call < 200; call += 1) {
    now += 1_300;
    await admission.admit({
      ...{ operation: 'send', accountId: 'a', mode: 'live', tier },
      ...{ keyId: `${call}`, phoneKey: `${call}` },
    });
  }
  const [, sustained] = await admission.usage({ accountId: 'a', mode: 'live', tier });
  t.is(sustained?.used, 47);
  // 47 buckets in use, and the three fields about them.
  t.is(await server.redis.hlen(`${prefix}lim:{a:l:a}sr`), 50);
});
