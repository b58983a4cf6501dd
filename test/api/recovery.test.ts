// A forgotten password: nobody keeps others from their codes, nothing tells who has an account, no code is lost.
import test from 'ava';
import sinon from 'sinon';
import { fail } from '../../lib/kernel/errors.ts';
import { sha256Hex } from '../../lib/kernel/secrets.ts';
import { createClient } from '../support/client.ts';
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
    const tried = { email, code: '12345678', new_password: password };
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
          ...{ email: `${uniqueName('s')}@tessera.example`, code: '12345678', password },
          visitor: { source: `stranger ${index}`, ip: '203.0.113.9', turnstileToken: undefined },
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
        [email, unknown].map((each) => reset(each, '12345678', wanted)),
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
  await reset(email, '12345678');
  const known = hashes.callCount;
  await reset(`${uniqueName('u')}@tessera.example`, '12345678');
  t.is(hashes.callCount, 2 * known);
  hashes.restore();
});

test.serial(
  'five wrong codes in a row, then a wait that doubles, for codes old and new',
  async (t) => {
    const known = await member();
    for (const each of [known.email, `${uniqueName('u')}@tessera.example`]) {
      for (const seconds of [15 * 60, 30 * 60, 60 * 60]) {
        for (let time = 0; time < 5; time++) {
          t.is((await reset(each, '12345678')).error.code, 'INVALID_CODE');
        }
        const refused = await reset(each, '12345678');
        t.is(refused.status, 429);
        t.like(refused.error, { dimension: 'login', retry_after_seconds: seconds });
        await from()('password/forgot', { email: each });
        t.is((await reset(each, '12345678')).status, 429, 'a new code does not begin anew');
        clock.forward(seconds * 1000);
      }
    }
  },
);

test.serial('a code for a reset has eight digits, and six are refused', async (t) => {
  const { email, phone } = await member();
  await from()('password/forgot', { email });
  const code = await codeOn(t, phone);
  t.regex(code, /^\d{8}$/);
  const short = await reset(email, code.slice(0, 6));
  t.like(short.error.details, [{ field: 'code', issue: 'must be exactly 8 digits' }]);
  t.is((await reset(email, code)).status, 200);
});

test.serial(
  'whatever strangers try, the owner logs in, changes and resets the password',
  async (t) => {
    const phone = stack.phone();
    const email = `${uniqueName('owner')}@tessera.example`;
    const owner = from();
    await owner('register', { email, password, name: 'Ada', phone: phone.number });
    const { data } = await owner('login', { email, password });
    const session = createClient(stack.url, String(data.session_token));
    const checked = sinon.stub(stack.api.passwords, 'check').resolves({
      matches: false,
      renewed: undefined,
    });
    for (let stranger = 0; stranger < 7; stranger++) {
      const call = from();
      for (let time = 0; time < 10; time++)
        await call('login', { email, password: 'a mere guess' });
    }
    checked.restore();
    for (let stranger = 0; stranger < 3; stranger++) {
      const call = from();
      for (let time = 0; time < 10; time++) {
        await call('password/reset', { email, code: '00000000', new_password: password });
      }
    }
    for (let time = 0; time < 12; time++) await from()('password/forgot', { email });
    t.is((await from()('login', { email, password })).status, 429, 'strangers wait');
    t.is((await owner('login', { email, password })).status, 200);
    const change = { current_password: password, new_password: 'another long password' };
    const second = createClient(
      stack.url,
      String((await owner('login', { email, password })).data.session_token),
    );
    t.is((await second.post('/v1/clients/password', change)).status, 200);
    t.is((await session.get('/v1/clients/me')).status, 401);
    // The strangers' codes went to the owner's phone: what came last is good.
    await stack.api.recovery.drain();
    const [{ code = '' } = {}] = (await phone.messages()).filter((each) => each.code?.length === 8);
    const fresh = { email, code, new_password: 'a third long password' };
    t.is((await from()('password/reset', fresh)).status, 429, 'from a new source it waits');
    t.is((await owner('password/reset', fresh)).status, 200);
    t.is((await owner('login', { email, password: 'a third long password' })).status, 200);
  },
);

test.serial(
  'strangers ask for eight codes a day; a source that the account knows goes on',
  async (t) => {
    const { email } = await member();
    const owner = from();
    await owner('login', { email, password });
    for (let time = 0; time < 8; time++) await stack.api.reads.take('forgot_day', sha256Hex(email));
    const refused = await from()('password/forgot', { email });
    t.is(refused.status, 429);
    t.like(refused.error, { dimension: 'login', limit: 8, window_seconds: 86_400 });
    for (let time = 0; time < 5; time++) {
      t.is((await owner('password/forgot', { email })).status, 200);
    }
    t.is((await owner('password/forgot', { email })).status, 429, 'it has an end, too');
  },
);

test.serial(
  'a flood of forgotten passwords leaves half of the sends for known sources',
  async (t) => {
    const { email, phone } = await member();
    const owner = from();
    await owner('login', { email, password });
    for (let each = 0; each < 30; each++) await stack.api.reads.take('forgot_strangers', 'all');
    const stranger = await member();
    t.is((await from()('password/forgot', { email: stranger.email })).status, 200, 'told alike');
    await stack.api.recovery.drain();
    t.is((await stranger.phone.messages()).length, 0, 'and not sent');
    await owner('password/forgot', { email });
    t.regex(await codeOn(t, phone), /^\d{8}$/);
  },
);

test.serial('sign-ups and resets are counted by /48 as well as by /64', async (t) => {
  const at = (group: string, path: string, body: unknown) =>
    stack.anybody.post(`/v1/clients/${path}`, body, {
      'X-Forwarded-For': `2001:db8:77:${group}::1`,
    });
  const statuses: number[] = [];
  for (let each = 0; each < 21; each++) {
    const email = `${uniqueName('v6')}@tessera.example`;
    const about = { email, password, name: 'Ada', phone: stack.phone().number };
    statuses.push((await at(each.toString(16), 'register', about)).status);
  }
  t.deepEqual(statuses, [...Array(20).fill(200), 429]);
  const resets: number[] = [];
  for (let each = 0; each < 61; each++) {
    const email = `${uniqueName('v6')}@tessera.example`;
    const body = { email, code: '12345678', new_password: password };
    resets.push((await at((each + 64).toString(16), 'password/reset', body)).status);
  }
  t.deepEqual(resets, [...Array(60).fill(400), 429]);
});
