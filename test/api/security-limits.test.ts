// What guards the security routes: every operation has a limit, and hashing has its bounds (spec section 8).
import test from 'ava';
import sinon from 'sinon';
import { day } from '../../lib/kernel/clock.ts';
import { idBytes } from '../../lib/kernel/ids.ts';
import { randomToken } from '../../lib/kernel/secrets.ts';
import { appCode } from '../support/authenticator.ts';
import { type Client, createClient } from '../support/client.ts';
import { listenForEvents } from '../support/events.ts';
import { createHandClock } from '../support/hand-clock.ts';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
const clock = createHandClock();
const base = '/v1/clients/security';

test.before(async () => {
  const settings = { TRUSTED_PROXIES: '1' };
  stack = await startStack('seclimits', { clock, workers: [], settings });
});
test.after.always(() => stack?.close());

const enableMfa = async ({ session }: Customer): Promise<string[]> => {
  const { data } = await session.post(`${base}/mfa/enroll`, undefined);
  const code = appCode(String(data.secret), clock.now());
  const confirmed = await session.post(`${base}/mfa/confirm`, { code });
  return confirmed.data.recovery_codes as string[];
};

const limited = async (work: () => Promise<{ status: number }>, most: number): Promise<number> => {
  for (let time = 0; time < most; time++) {
    if ((await work()).status === 429) return time;
  }
  return most;
};

test.serial('changes of the security of an account share sixty an hour', async (t) => {
  const who = await stack.customer();
  const { password } = who;
  const calls = [
    () => who.session.post(`${base}/reauth`, { password }),
    () => who.session.post(`${base}/mfa/enroll`, undefined),
    () => who.session.post(`${base}/mfa/confirm`, { code: '000000' }),
    () => who.session.post(`${base}/mfa/disable`, { password }),
    () => who.session.post(`${base}/mfa/recovery`, { password }),
  ];
  let taken = 0;
  for (const call of calls.slice(1)) {
    await call();
    taken += 1;
  }
  const [reauth = calls[0]] = calls;
  if (!reauth) throw new Error('no call');
  t.is((await limited(reauth, 100)) + taken, 60);
  for (const call of calls) {
    const answer = await call();
    t.is(answer.status, 429);
    t.like(answer.error, { dimension: 'account', limit: 60, window_seconds: 3600 });
  }
  t.is((await who.session.get('/v1/clients/me')).status, 200);
});

test.serial('a stolen session keeps nobody from finding and ending it', async (t) => {
  const { session: stolen, password, accountId } = await stack.customer();
  await limited(() => stolen.post(`${base}/reauth`, { password }), 100);
  await limited(() => stolen.call('DELETE', `${base}/sessions/${accountId}`), 100);
  await limited(() => stolen.get(`${base}/sessions`), 200);
  const owner = await stack.sessionOf(accountId);
  const { items } = (await owner.get(`${base}/sessions`)).data;
  const [found] = (items as { id: string; current: boolean }[]).filter(({ current }) => !current);
  t.is((await owner.call('DELETE', `${base}/sessions/${found?.id}`)).status, 200);
  t.is((await owner.post(`${base}/sessions/revoke-others`, undefined)).status, 200);
  t.is((await stolen.get('/v1/clients/me')).error.code, 'INVALID_SESSION');
});

test.serial('looking at factors and sessions counts as reading', async (t) => {
  const who = await stack.customer();
  for (const path of ['mfa', 'sessions']) {
    t.is(await limited(() => who.session.get(`${base}/${path}`), 130), 120);
  }
});

test.serial('a busy machine does not make the code that confirms a factor age', async (t) => {
  const who = await stack.customer();
  // No hash is ever finished.
  const stuck = ['hash', 'check', 'derive'].map((name) =>
    sinon.stub(stack.api.passwords, name as 'hash').returns(new Promise(() => undefined)),
  );
  const codes = await enableMfa(who);
  t.is(codes.length, 10);
  const renewed = await who.session.post(`${base}/mfa/recovery`, { code: codes[0] });
  t.is((renewed.data.recovery_codes as string[]).length, 10);
  for (const stub of stuck) stub.restore();
});

test.serial('recovery codes of a set kept as Argon2id go on working', async (t) => {
  const who = await stack.customer();
  await enableMfa(who);
  const code = 'ABCD-EFGH-JKMN-PQRS';
  const salt = Buffer.alloc(16, 7);
  const [hash] = await stack.api.passwords.derive(['ABCDEFGHJKMNPQRS'], salt);
  const account_id = idBytes(who.accountId);
  await stack.api.db('recovery_codes').where({ account_id }).delete();
  await stack.api.db('recovery_codes').insert({ account_id, hash });
  await stack.api.db('account_factors').where({ account_id }).update({ recovery_salt: salt });
  t.is((await who.session.post(`${base}/reauth`, { code })).status, 200);
  t.is((await who.session.post(`${base}/reauth`, { code })).error.code, 'INVALID_CODE');
});

test.serial('wrong recovery codes refuse no code of the app, nor the reverse', async (t) => {
  const who = await stack.customer();
  const [code = ''] = await enableMfa(who);
  const reauth = (given: string) => who.session.post(`${base}/reauth`, { code: given });
  for (let time = 0; time < 10; time++) t.is((await reauth('000000')).status, 400);
  t.is((await reauth('000000')).error.code, 'RATE_LIMIT_EXCEEDED');
  t.is((await reauth(code)).status, 200, 'a recovery code is counted apart');
});

test.serial('what one session guesses wrong refuses no other session of the account', async (t) => {
  const who = await stack.customer();
  const other = await stack.sessionOf(who.accountId);
  const reauth = (session: Client, password: string) =>
    session.post(`${base}/reauth`, { password });
  for (let time = 0; time < 10; time++) t.is((await reauth(other, 'wrong')).status, 401);
  t.is((await reauth(other, who.password)).error.code, 'RATE_LIMIT_EXCEEDED');
  t.is((await reauth(who.session, who.password)).status, 200);
});

test.serial('a proof makes nobody forget what is remembered of others', async (t) => {
  const who = await stack.customer();
  const announce = sinon.spy(stack.api.revocations, 'announce');
  t.is((await who.session.post(`${base}/reauth`, { password: who.password })).status, 200);
  t.is(announce.callCount, 0);
  announce.restore();
});

test.serial(
  'unknown tokens of sessions count by their source; good ones go on working',
  async (t) => {
    const who = await stack.customer();
    const headers = { 'X-Forwarded-For': '198.51.100.7' };
    const calls = [
      ['sess_', 'GET', '/v1/clients/me'],
      ['rt_', 'POST', '/v1/clients/session/refresh'],
      ['mfa_', 'POST', `${base}/login/mfa`],
    ] as const;
    const stranger = async (time: number) => {
      const [kind, method, path] = calls[time % 3] ?? calls[0];
      const client = createClient(stack.url, kind + randomToken(32));
      const body = kind === 'mfa_' ? { code: '123456' } : undefined;
      return client.call(method, path, { headers, ...(body ? { body } : {}) });
    };
    for (let time = 0; time < 60; time++) {
      t.is((await stranger(time)).error.code, 'INVALID_SESSION');
    }
    for (let time = 0; time < 3; time++) {
      const refused = await stranger(time);
      t.is(refused.status, 429);
      t.like(refused.error, { dimension: 'source_ip', limit: 60, window_seconds: 60 });
    }
    t.is((await who.session.get('/v1/clients/me', headers)).status, 200);
  },
);

test.serial('a session is refreshed thirty times a minute', async (t) => {
  const { email, password } = await stack.customer();
  const { data } = await stack.anybody.post('/v1/clients/login', { email, password });
  let token = data.refresh_token;
  const refresh = async () => {
    const client = createClient(stack.url, String(token));
    const answer = await client.post('/v1/clients/session/refresh', undefined);
    token = answer.data.refresh_token ?? token;
    return answer;
  };
  t.is(await limited(refresh, 40), 30);
});

test.serial(
  'an account logs in six hundred times an hour; guesses are answered as before',
  async (t) => {
    const { accountId, email, password } = await stack.customer();
    const logIn = (given: string) =>
      stack.anybody.post('/v1/clients/login', { email, password: given });
    for (let time = 0; time < 599; time++) await stack.api.reads.take('session_open', accountId);
    t.is((await logIn(password)).status, 200);
    const refused = await logIn(password);
    t.like(refused.error, { code: 'RATE_LIMIT_EXCEEDED', dimension: 'login', limit: 600 });
    t.is((await logIn('not this one')).error.code, 'INVALID_CREDENTIALS');
  },
);

test.serial('fewer than three recovery codes are told of, with how many are left', async (t) => {
  const who = await stack.customer();
  const events = await listenForEvents(stack, 'security.recovery_codes_low');
  const codes = await enableMfa(who);
  const use = (code = '') => who.session.post(`${base}/reauth`, { code });
  for (const code of codes.slice(0, 7)) t.is((await use(code)).status, 200);
  t.deepEqual(events.heard, []);
  t.is((await use(codes[7])).status, 200);
  const event = await eventually(t, () => events.heard[0]);
  t.like(event, { account_id: who.accountId, data: { recovery_codes_remaining: 2 } });
  await events.close();
});

test.serial(
  'every row of failures and every limit of an account has its time to live',
  async (t) => {
    const { redis, config } = stack.api;
    const keys = await redis.keys(`${config.keyPrefix}*`);
    t.true(keys.length > 10);
    for (const key of keys.filter((name) => !name.endsWith('keys-epochs'))) {
      const left = await redis.pttl(key);
      t.true(left > 0 && left <= 8 * day, `${key} ${left}`);
    }
  },
);
