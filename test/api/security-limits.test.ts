// What guards the security routes: every operation has a limit, and hashing has its bounds (spec section 8).
import test from 'ava';
import sinon from 'sinon';
import { day } from '../../lib/kernel/clock.ts';
import { randomToken } from '../../lib/kernel/secrets.ts';
import { appCode } from '../support/authenticator.ts';
import { createClient } from '../support/client.ts';
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

test.serial(
  'recovery codes are hashed on the thread of passwords, a set in one place of its queue',
  async (t) => {
    const who = await stack.customer();
    const derive = sinon.spy(stack.api.passwords, 'derive');
    const [code = ''] = await enableMfa(who);
    await who.session.post(`${base}/mfa/recovery`, { password: who.password });
    t.deepEqual(
      derive.args.map(([texts]) => texts.length),
      [10, 10],
    );
    await who.session.post(`${base}/reauth`, { code });
    t.deepEqual(derive.lastCall.args[0].length, 1);
    derive.restore();
  },
);

test.serial('with no room for hashes new codes are refused, and the old ones stay', async (t) => {
  const who = await stack.customer();
  const [code = ''] = await enableMfa(who);
  const { hash } = stack.api.passwords;
  let over = false;
  // Whoever is served stands in line again, so there is no room until it is over.
  const visitor = async (): Promise<void> => {
    while (!over) await hash('somebody else').catch(() => new Promise(setImmediate));
  };
  const crowd = Promise.all(Array.from({ length: 70 }, visitor));
  const refused = await who.session.post(`${base}/mfa/recovery`, { code });
  over = true;
  t.is(refused.error.code, 'SERVICE_UNAVAILABLE');
  await crowd;
  t.is((await who.session.post(`${base}/reauth`, { code })).status, 200, 'nor was it used up');
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
