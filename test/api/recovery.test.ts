// A forgotten password: nobody keeps others from their codes, nothing tells who has an account, no code is lost.
import test from 'ava';
import sinon from 'sinon';
import { hour } from '../../lib/kernel/clock.ts';
import { fail } from '../../lib/kernel/errors.ts';
import { createHandClock } from '../support/hand-clock.ts';
import { uniqueName } from '../support/names.ts';
import type { TestPhone } from '../support/phones.ts';
import { eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
const clock = createHandClock();
const password = 'correct horse battery';

test.before(async () => {
  stack = await startStack('recovery', { clock, settings: { TRUSTED_PROXIES: '1' } });
});
test.after.always(() => stack?.close());

let address = 0;
/** Calls from an address of its own. */
const from = () => {
  address += 1;
  const headers = { 'X-Forwarded-For': `198.51.100.${address}` };
  return (path: string, body: unknown) => stack.anybody.post(`/v1/clients/${path}`, body, headers);
};

const member = async (more: Record<string, unknown> = {}) => {
  const phone = stack.phone();
  const email = `${uniqueName('r')}@tessera.example`;
  const about = { email, password, name: 'Ada', phone: phone.number, ...more };
  await from()('register', about);
  return { email, phone };
};

const codeOn = (t: Parameters<typeof eventually>[0], phone: TestPhone) =>
  eventually(t, async () => (await phone.messages())[0]?.code ?? undefined);

const reset = (email: string, code: string, wanted = 'a fresh long password') =>
  from()('password/reset', { email, code, new_password: wanted });

/** Hashing that costs nothing, where its cost is not what is looked at. */
const free = () => sinon.stub(stack.api.passwords, 'hash').resolves('x');

test.serial('a source tries twenty codes an hour, whatever addresses it makes up', async (t) => {
  const call = from();
  const hashing = free();
  const answers: (string | undefined)[] = [];
  for (let time = 0; time < 21; time++) {
    const email = `${uniqueName('n')}@tessera.example`;
    const tried = { email, code: '123456', new_password: password };
    answers.push((await call('password/reset', tried)).error.code);
  }
  hashing.restore();
  t.deepEqual(answers.slice(0, 20), Array(20).fill('INVALID_CODE'));
  t.is(answers[20], 'RATE_LIMIT_EXCEEDED');
});

test.serial(
  'three hundred and fifty strangers keep nobody from sending or trying a code',
  async (t) => {
    const { email, phone } = await member();
    const { recovery } = stack.api;
    const hashing = free();
    const strangers = await Promise.allSettled(
      Array.from({ length: 350 }, (_, index) =>
        recovery.reset({
          ...{ email: `${uniqueName('s')}@tessera.example`, code: '123456', password },
          source: `stranger ${index}`,
        }),
      ),
    );
    hashing.restore();
    const codes = strangers.map((each) => (each.status === 'rejected' ? each.reason.code : ''));
    t.deepEqual(new Set(codes), new Set(['INVALID_CODE']), 'each has its own credential');
    t.is((await from()('password/forgot', { email })).status, 200);
    const code = await codeOn(t, phone);
    t.is((await reset(email, code)).status, 200);
  },
);

test.serial(
  'a new password is judged alike for addresses with and without an account',
  async (t) => {
    const { email } = await member({ company: 'Analytical' });
    const unknown = `${uniqueName('u')}@tessera.example`;
    for (const wanted of ['Analytical12', 'password1', 'tessera2026']) {
      const answers = await Promise.all(
        [email, unknown].map((each) => reset(each, '123456', wanted)),
      );
      const [known, other] = answers.map(({ status, error }) => [
        status,
        error.code,
        error.details,
      ]);
      t.deepEqual(known, other, wanted);
    }
  },
);

test.serial('a code outlives a reset for which there was no room', async (t) => {
  const { email, phone } = await member();
  await from()('password/forgot', { email });
  const code = await codeOn(t, phone);
  const full = sinon.stub(stack.api.passwords, 'hash').rejects(fail('SERVICE_UNAVAILABLE'));
  const refused = await reset(email, code);
  full.restore();
  t.is(refused.error.code, 'SERVICE_UNAVAILABLE');
  t.is((await reset(email, code)).status, 200);
  t.is((await from()('login', { email, password: 'a fresh long password' })).status, 200);
});

test.serial(
  'whoever tried in vain and strangers who guessed keep no owner out after a reset',
  async (t) => {
    const { email, phone } = await member();
    const owner = from();
    const wrong = { email, password: 'not the password' };
    const checked = sinon.stub(stack.api.passwords, 'check').resolves({
      ...{ matches: false, renewed: undefined },
    });
    for (let time = 0; time < 10; time++) await owner('login', wrong);
    for (let time = 0; time < 40; time++) await from()('login', wrong);
    checked.restore();
    t.is((await owner('login', { email, password })).error.code, 'RATE_LIMIT_EXCEEDED');
    t.is((await from()('login', { email, password })).error.code, 'RATE_LIMIT_EXCEEDED');
    await owner('password/forgot', { email });
    const code = await codeOn(t, phone);
    const fresh = 'a fresh long password';
    t.is((await owner('password/reset', { email, code, new_password: fresh })).status, 200);
    t.is((await owner('login', { email, password: fresh })).status, 200);
    t.is((await from()('login', { email, password: fresh })).status, 200);
  },
);

test.serial('an address without an account takes as many hashes as one with', async (t) => {
  const { email } = await member();
  const hashes = sinon.spy(stack.api.passwords, 'hash');
  await reset(email, '123456');
  const known = hashes.callCount;
  await reset(`${uniqueName('u')}@tessera.example`, '123456');
  t.is(hashes.callCount, 2 * known);
  hashes.restore();
});

test.serial('ten codes an hour are tried for an address, known or not', async (t) => {
  const { email } = await member();
  const hashing = free();
  for (const each of [email, `${uniqueName('u')}@tessera.example`]) {
    for (let time = 0; time < 10; time++) t.is((await reset(each, '123456')).status, 400);
    t.is((await reset(each, '123456')).status, 429);
  }
  hashing.restore();
  clock.forward(hour);
});
