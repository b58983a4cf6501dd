// Account security: the second factor from set-up to its end, re-authentication, sessions (spec section 4).
import test from 'ava';
import sinon from 'sinon';
import { RedisUnavailable } from '../../lib/infra/redis.ts';
import { minute } from '../../lib/kernel/clock.ts';
import { openSession } from '../../lib/sessions/open.ts';
import { appCode } from '../support/authenticator.ts';
import { type Client, createClient } from '../support/client.ts';
import { createHandClock } from '../support/hand-clock.ts';
import { type Customer, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
const clock = createHandClock();
const base = '/v1/clients/security';

test.before(async () => {
  stack = await startStack('security', { clock, workers: [] });
});
test.after.always(() => stack?.close());

type Member = Customer & { post(path: string, body?: unknown): ReturnType<Client['post']> };

const member = async (): Promise<Member> => {
  const customer = await stack.customer();
  return { ...customer, post: (path, body) => customer.session.post(`${base}/${path}`, body) };
};

/** Puts the clock where a fresh step begins, so that a code is never used up by an earlier call. */
const nextStep = () => clock.forward(30_000 - (clock.now() % 30_000));

const protectedMember = async () => {
  const who = await member();
  const { secret } = (await who.post('mfa/enroll')).data as { secret: string };
  const { data } = await who.post('mfa/confirm', { code: appCode(secret, clock.now()) });
  return { ...who, secret, codes: data.recovery_codes as string[] };
};

const logIn = async ({ email, password }: Customer) =>
  stack.anybody.post('/v1/clients/login', { email, password });

const answerWith = (token: unknown, code: string) =>
  createClient(stack.url, String(token)).post(`${base}/login/mfa`, { code });

const anotherSession = async ({ accountId }: Customer) => {
  const account = await stack.api.accounts.find(accountId);
  if (!account) throw new Error('no account');
  const visitor = { ip: '192.0.2.9', userAgent: 'Elsewhere/1.0', source: 'tests' };
  const { tokens } = await openSession(stack.api, { account, visitor, mfa: false });
  return createClient(stack.url, tokens.access);
};

test.serial('the whole way: set up, confirm, log in with a code, turn off', async (t) => {
  const who = await member();
  const enrolled = await who.post('mfa/enroll');
  const { secret, otpauth_url: url, qr_code: qr } = enrolled.data as Record<string, string>;
  t.regex(String(url), /^otpauth:\/\/totp\/Tessera:.*algorithm=SHA1&digits=6&period=30$/);
  t.true(String(qr).startsWith('data:image/png;base64,'));
  t.is((await logIn(who)).data.mfa_required, undefined, 'it does not count before it is confirmed');

  const off = appCode(String(secret), clock.now(), 3);
  t.is((await who.post('mfa/confirm', { code: off })).error.code, 'INVALID_CODE');
  const used = appCode(String(secret), clock.now());
  const confirmed = await who.post('mfa/confirm', { code: used });
  const codes = confirmed.data.recovery_codes as string[];
  t.is(new Set(codes).size, 10);
  for (const code of codes) t.regex(code, /^([0-9A-HJKMNP-TV-Z]{4}-){5}[0-9A-HJKMNP-TV-Z]{4}$/);
  const state = (await who.session.get(`${base}/mfa`)).data;
  t.like(state, { enabled: true, recovery_codes_remaining: 10 });
  t.is((await who.post('mfa/enroll')).error.code, 'ALREADY_ENROLLED');

  const login = await logIn(who);
  t.like(login.data, { mfa_required: true, expires_in: 300 });
  t.is(login.data.session_token, undefined);
  t.is(
    (await answerWith(login.data.mfa_token, used)).error.code,
    'INVALID_CODE',
    'used to confirm',
  );
  nextStep();
  const opened = await answerWith(login.data.mfa_token, appCode(String(secret), clock.now()));
  t.is(opened.status, 200);
  const session = createClient(stack.url, String(opened.data.session_token));
  t.like((await session.get('/v1/clients/me')).data, { mfa_enabled: true });
  nextStep();
  const again = await answerWith(login.data.mfa_token, appCode(String(secret), clock.now()));
  t.is(again.error.code, 'INVALID_SESSION', 'a token opens one session');

  const other = await anotherSession(who);
  t.is((await other.get('/v1/clients/me')).status, 200);
  const wrong = await session.post(`${base}/mfa/disable`, { password: 'not this one' });
  t.is(wrong.error.code, 'INVALID_CREDENTIALS');
  const ended = await session.post(`${base}/mfa/disable`, { password: who.password });
  t.is(ended.status, 200);
  t.is((await other.get('/v1/clients/me')).error.code, 'INVALID_SESSION');
  t.is((await session.get('/v1/clients/me')).status, 200);
  t.is((await logIn(who)).data.mfa_required, undefined);
  t.like((await session.get(`${base}/mfa`)).data, { enabled: false, recovery_codes_remaining: 0 });
});

test.serial('a recovery code works once, however it is written', async (t) => {
  const who = await protectedMember();
  const [first = '', second = ''] = who.codes;
  const login = await logIn(who);
  t.is(
    (await answerWith(login.data.mfa_token, first.toLowerCase().replaceAll('-', ' '))).status,
    200,
  );
  const next = await logIn(who);
  t.is((await answerWith(next.data.mfa_token, first)).error.code, 'INVALID_CODE');
  t.is((await answerWith(next.data.mfa_token, second)).status, 200);
  t.is((await who.session.get(`${base}/mfa`)).data.recovery_codes_remaining, 8);
});

test.serial('one recovery code opens one session, asked for eight times at once', async (t) => {
  const who = await protectedMember();
  const [code = ''] = who.codes;
  const tokens = await Promise.all(
    Array.from({ length: 4 }, async () => (await logIn(who)).data.mfa_token),
  );
  const opened = await Promise.all(tokens.map((token) => answerWith(token, code)));
  t.is(opened.filter(({ status }) => status === 200).length, 1);
});

test.serial('new recovery codes void the old ones', async (t) => {
  const who = await protectedMember();
  const renewed = await who.post('mfa/recovery', { password: who.password });
  const login = await logIn(who);
  t.is((await answerWith(login.data.mfa_token, who.codes[0] ?? '')).error.code, 'INVALID_CODE');
  const [fresh = ''] = renewed.data.recovery_codes as string[];
  t.is((await answerWith(login.data.mfa_token, fresh)).status, 200);
  const log = await who.session.get('/v1/clients/security/log');
  const actions = (log.data.items as { action: string }[]).map(({ action }) => action);
  t.deepEqual(actions.slice(0, 3), ['login', 'recovery_codes_renewed', 'mfa_enabled']);
});

test.serial('a token takes five codes, then waits for nobody', async (t) => {
  const who = await protectedMember();
  const { data } = await logIn(who);
  for (const left of [4, 3, 2, 1, 0]) {
    t.like((await answerWith(data.mfa_token, '000000')).error, {
      ...{ code: 'INVALID_CODE', attempts_remaining: left },
    });
  }
  nextStep();
  const sixth = await answerWith(data.mfa_token, appCode(who.secret, clock.now()));
  t.is(sixth.status, 429);
  t.is(sixth.error.code, 'TOO_MANY_ATTEMPTS');
  t.truthy(sixth.headers.get('retry-after'));
});

test.serial('an account takes ten codes an hour, over all its tokens', async (t) => {
  const who = await protectedMember();
  const codes: unknown[] = [];
  for (let token = 0; token < 3; token++) {
    const { data } = await logIn(who);
    for (let time = 0; time < 4; time++) {
      codes.push((await answerWith(data.mfa_token, '000000')).error.code);
    }
  }
  t.deepEqual(codes.slice(0, 10), Array(10).fill('INVALID_CODE'));
  t.is(codes[10], 'RATE_LIMIT_EXCEEDED');
});

test.serial('a token of a login lives five minutes and opens nothing else', async (t) => {
  const who = await protectedMember();
  const { data } = await logIn(who);
  const bearer = createClient(stack.url, String(data.mfa_token));
  t.is((await bearer.get('/v1/clients/me')).status, 401);
  clock.forward(5 * minute);
  const late = await answerWith(data.mfa_token, appCode(who.secret, clock.now()));
  t.is(late.error.code, 'INVALID_SESSION');
  t.is((await answerWith('mfa_nonsense', '123456')).error.code, 'INVALID_SESSION');
});

test.serial('a seed waits ten minutes for its code; the newest counts', async (t) => {
  const who = await member();
  const first = String((await who.post('mfa/enroll')).data.secret);
  const second = String((await who.post('mfa/enroll')).data.secret);
  const old = await who.post('mfa/confirm', { code: appCode(first, clock.now()) });
  t.is(old.error.code, 'INVALID_CODE');
  clock.forward(10 * minute);
  const late = await who.post('mfa/confirm', { code: appCode(second, clock.now()) });
  t.is(late.error.code, 'TOTP_NOT_ENROLLED');
});

test.serial('what needs a second factor says so when there is none', async (t) => {
  const who = await member();
  const proof = { password: who.password };
  t.is((await who.post('mfa/disable', proof)).error.code, 'TOTP_NOT_ENROLLED');
  t.is((await who.post('mfa/recovery', proof)).error.code, 'TOTP_NOT_ENROLLED');
  t.is((await who.post('mfa/confirm', { code: '123456' })).error.code, 'TOTP_NOT_ENROLLED');
});

test.serial('sensitive changes need a login or proof within ten minutes', async (t) => {
  const who = await member();
  await anotherSession(who);
  clock.forward(10 * minute + 1);
  t.is((await who.post('sessions/revoke-others')).error.code, 'REAUTH_REQUIRED');
  t.is((await who.post('mfa/enroll')).error.code, 'REAUTH_REQUIRED');
  t.is((await who.post('reauth', { password: 'not this one' })).error.code, 'INVALID_CREDENTIALS');
  t.is((await who.post('reauth', { code: '123456' })).error.code, 'INVALID_CODE');
  t.like((await who.post('reauth', { password: who.password })).data, {
    ...{ reauthenticated: true, expires_in: 600 },
  });
  t.is((await who.post('sessions/revoke-others')).data.revoked, 1);
});

test.serial('exactly one of password and code is taken, within its bounds', async (t) => {
  const who = await member();
  const wrong = [
    {},
    { password: 'a', code: '123456' },
    { password: '' },
    { password: 'x'.repeat(129) },
    { code: '12345' },
    { code: '1'.repeat(33) },
    { code: 123456 },
    { password: 'x', other: 1 },
  ];
  for (const path of ['reauth', 'mfa/disable', 'mfa/recovery']) {
    for (const body of wrong) {
      t.is((await who.post(path, body)).error.code, 'VALIDATION_ERROR', JSON.stringify(body));
    }
  }
  const bearer = createClient(stack.url, 'mfa_nonsense');
  const posts = [
    (body: unknown) => who.post('mfa/confirm', body),
    (body: unknown) => bearer.post(`${base}/login/mfa`, body),
  ];
  for (const post of posts) {
    for (const body of [
      {},
      { code: '12345' },
      { code: '1'.repeat(33) },
      { code: '123456', x: 1 },
    ]) {
      t.is((await post(body)).error.code, 'VALIDATION_ERROR', JSON.stringify(body));
    }
  }
});

test.serial('sessions are listed, and ended one by one by their owner alone', async (t) => {
  const who = await member();
  const other = await anotherSession(who);
  const { items } = (await who.session.get(`${base}/sessions`)).data as {
    items: { id: string; current: boolean; user_agent: string }[];
  };
  t.deepEqual(
    items.map(({ current, user_agent: agent }) => [current, agent]),
    [
      [false, 'Elsewhere/1.0'],
      [true, 'tests'],
    ],
  );
  const [theirs] = items;
  const stranger = await member();
  const path = `${base}/sessions/${theirs?.id}`;
  t.is((await stranger.session.call('DELETE', path)).status, 404);
  t.is((await other.get('/v1/clients/me')).status, 200);
  t.is((await who.session.call('DELETE', path)).status, 200);
  t.is((await other.get('/v1/clients/me')).error.code, 'INVALID_SESSION');
  t.is((await who.session.call('DELETE', path)).status, 404);
  t.is((await who.session.call('DELETE', `${base}/sessions/nonsense`)).status, 404);
});

test.serial('an account holds twenty sessions; the oldest goes', async (t) => {
  const who = await member();
  for (let time = 0; time < 19; time++) await anotherSession(who);
  t.is((await who.session.get('/v1/clients/me')).status, 200);
  await anotherSession(who);
  t.is((await who.session.get('/v1/clients/me')).error.code, 'INVALID_SESSION');
});

test.serial('codes that nobody looked at do not use the token up', async (t) => {
  const who = await protectedMember();
  const { mfa_token: token } = (await logIn(who)).data;
  nextStep();
  const code = appCode(who.secret, clock.now());
  const away = sinon.stub(stack.api.throttle, 'guessing').rejects(new RedisUnavailable());
  for (let attempt = 0; attempt < 6; attempt++) {
    t.is((await answerWith(token, code)).status, 503);
  }
  away.restore();
  t.is((await answerWith(token, code)).status, 200);
});

test.serial(
  'new recovery codes for a factor that is turned off meanwhile leave nothing',
  async (t) => {
    const who = await protectedMember();
    const act = { by: 'session', credentialId: null, ip: null, requestId: null } as const;
    const set = { hashes: [Buffer.alloc(32, 1)], act };
    await who.post('mfa/disable', { password: who.password });
    t.false(await stack.api.factors.replaceRecoveryCodes(who.accountId, set));
    t.like((await who.session.get(`${base}/mfa`)).data, { recovery_codes_remaining: 0 });
  },
);
