// One address is one account and one row of failures, however it is spelled.
import test from 'ava';
import { emailKey } from '../../lib/accounts/rules.ts';
import { beginRequest } from '../support/half-requests.ts';
import { uniqueName } from '../support/names.ts';
import { aNumber } from '../support/phones.ts';
import { eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
const password = 'correct horse battery';

test.before(async () => {
  stack = await startStack('addresses', {
    workers: [],
    settings: {
      TRUSTED_PROXIES: '1',
      MAX_BODIES_PER_ADDRESS: '2',
      MAX_CONNECTIONS_PER_ADDRESS: '5',
    },
  });
});
test.after.always(() => stack?.close());

let address = 0;
const from = () => {
  address += 1;
  const headers = { 'X-Forwarded-For': `198.51.100.${address}` };
  return (path: string, body: unknown) => stack.anybody.post(`/v1/clients/${path}`, body, headers);
};

const register = (email: string) =>
  from()('register', { email, password, name: 'Ada', phone: aNumber() });

test('an address with accents is another address: to log in, and to be counted', async (t) => {
  const { email } = await stack.customer();
  const victim = `victim${email}`;
  t.is((await register(victim)).status, 200);
  const accented = victim.replace('victim', 'viçtím');
  t.is((await from()('login', { email: accented, password })).status, 401);
  t.is((await register(accented)).status, 200, 'nobody has it');
  t.is((await from()('login', { email: accented, password })).status, 200);
});

test('no spelling of an address escapes its row of failures', async (t) => {
  const email = `${uniqueName('zo')}ë@tessera.example`;
  t.is((await register(email.normalize('NFC'))).status, 200);
  const spellings = [
    ...[email.normalize('NFC'), email.normalize('NFD')],
    ...[email.normalize('NFC').toUpperCase(), email.normalize('NFD').toUpperCase()],
  ];
  const call = from();
  for (let time = 0; time < 10; time++) {
    const guess = { email: spellings[time % spellings.length], password: 'wrong one' };
    t.is((await call('login', guess)).status, 401);
  }
  for (const spelling of spellings) {
    t.is((await call('login', { email: spelling, password })).status, 429, spelling);
  }
  for (const spelling of spellings) {
    t.is((await from()('login', { email: spelling, password })).status, 200, 'it is one account');
    t.is((await register(spelling)).error.code, 'EMAIL_TAKEN');
  }
});

test('the limits of a forgotten password count an address once, however it is spelled', async (t) => {
  const spellings = ['jos\u00e9@tessera.example', 'jose\u0301@tessera.example'];
  const codes: number[] = [];
  for (let time = 0; time < 6; time++) {
    codes.push((await from()('password/forgot', { email: spellings[time % 2] })).status);
  }
  t.deepEqual(codes, [200, 200, 200, 200, 200, 429]);
});

test('keys of addresses keep letters apart that only look alike', (t) => {
  t.is(emailKey(' Ada@Example.COM '), 'ada@example.com');
  t.is(emailKey('e\u0301@x.y'), emailKey('\u00c9@x.y'));
  t.not(emailKey('e@x.y'), emailKey('\u00e9@x.y'));
});

test('behind a proxy half-read bodies count by the address of the client, not by that of the proxy', async (t) => {
  const begin = (client: string) =>
    beginRequest(t, stack.url, {
      ...{ path: '/v1/clients/register', from: '127.0.0.9' },
      headers: { 'X-Forwarded-For': `203.0.113.1, ${client}` },
    });
  // More than one address may open where it is the peer itself.
  const others = await Promise.all([1, 2, 3, 4, 5, 6].map((n) => begin(`198.51.100.${200 + n}`)));
  const first = await begin('2001:db8:7::1');
  await begin('2001:db8:7::2');
  await begin('2001:db8:7:0:ffff::3');
  await eventually(t, () => first.said().startsWith('HTTP/1.1 503') || undefined);
  t.deepEqual(others.filter(({ said }) => said() !== '').length, 0);
});
