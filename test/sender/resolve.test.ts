// Which number sends: asked of MySQL once per account and change, and kept while MySQL is away.
import { randomBytes } from 'node:crypto';
import test from 'ava';
import type { FoundConnection } from '../../lib/connections/store.ts';
import { createSealer } from '../../lib/kernel/secrets.ts';
import { createResolveSender } from '../../lib/sender/resolve.ts';
import { createHandClock } from '../support/hand-clock.ts';
import { shared, testConfig } from '../support/settings.ts';

const sealer = createSealer([{ id: 'k1', key: randomBytes(32) }]);
const id = '0192f0c1-7a3b-7c4d-8e5f-0123456789ab';

const connection: FoundConnection = {
  ...{ id, accountId: 'a', phoneNumberId: '42', wabaId: '7', source: 'manual' },
  ...{ displayName: null, displayPhoneNumber: null, qualityRating: 'green' },
  ...{ status: 'connected', brokenAt: null, brokenReason: null, connectedAt: 0 },
  ...{ templates: [], accountLanguage: 'ar' },
  sealedToken: sealer.seal('the token', { purpose: 'whatsapp-token', record: id }),
};

const start = (settings: Record<string, string> = {}) => {
  const engines = {
    ...{ mysql: 'mysql://u:p@127.0.0.1/d', redis: 'redis://127.0.0.1:1/0' },
    ...{ amqp: 'amqp://u:p@127.0.0.1/', prefix: 'test:' },
  };
  const state = {
    ...{ epoch: '1' as string | undefined, asked: 0, away: false },
    found: undefined as FoundConnection | undefined,
  };
  const clock = createHandClock();
  const resolve = createResolveSender({
    ...{ sealer, clock, config: testConfig(engines, 'http://127.0.0.1:1', settings) },
    revocations: { epoch: () => state.epoch, news: () => Number(state.epoch) },
    connections: {
      find: () => {
        state.asked++;
        return state.away ? Promise.reject(new Error('away')) : Promise.resolve(state.found);
      },
    },
  });
  return { state, clock, resolve };
};

test('an account without a number of its own uses the shared one, if there is one', async (t) => {
  const { resolve } = start();
  t.like(await resolve('a'), { shared: true, phoneNumberId: shared.whatsapp.phoneNumberId });
  t.is(await start({ WHATSAPP_ACCESS_TOKEN: '' }).resolve('a'), undefined);
});

test('an own number comes with its token and the account’s template', async (t) => {
  const { state, resolve } = start();
  state.found = connection;
  t.deepEqual(await resolve('a'), {
    ...{ shared: false, connectionId: id, broken: false, phoneNumberId: '42' },
    ...{ accessToken: 'the token', templateName: 'otp_code', templateLanguage: 'ar' },
  });
});

test('MySQL is asked once, however many ask at once, until something changed or a minute passed', async (t) => {
  const { state, clock, resolve } = start();
  await Promise.all(Array.from({ length: 100 }, () => resolve('a')));
  await resolve('a');
  t.is(state.asked, 1);
  state.found = connection;
  state.epoch = '2';
  t.like(await resolve('a'), { shared: false });
  t.is(state.asked, 2);
  clock.forward(60_001);
  await resolve('a');
  t.is(state.asked, 3);
  await resolve('b');
  t.is(state.asked, 4);
});

test('nothing is remembered while nobody can say whether it still holds', async (t) => {
  const { state, resolve } = start();
  state.epoch = undefined;
  await resolve('a');
  await resolve('a');
  t.is(state.asked, 2);
});

test('while MySQL is away an account keeps its number, and an unknown one gets none by guess', async (t) => {
  const { state, resolve } = start();
  state.found = connection;
  await resolve('a');
  Object.assign(state, { away: true, epoch: '2' });
  t.like(await resolve('a'), { shared: false, phoneNumberId: '42' });
  await t.throwsAsync(resolve('b'), { message: 'away' });
  Object.assign(state, { away: false, found: undefined });
  t.like(await resolve('a'), { shared: true });
});
