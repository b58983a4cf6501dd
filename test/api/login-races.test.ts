// A login is as good as its proof at the moment its session is written, whatever changed while a hash was made.
import { hash } from '@node-rs/argon2';
import test, { type ExecutionContext } from 'ava';
import { idBytes, newId } from '../../lib/kernel/ids.ts';
import { forceLogout } from '../../lib/security/suspend.ts';
import { appCode } from '../support/authenticator.ts';
import { createClient } from '../support/client.ts';
import { holdNext } from '../support/hold.ts';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;

test.before(async () => {
  stack = await startStack('races', { workers: [] });
});
test.after.always(() => stack?.close());

const fresh = 'a fresh long password';

const logIn = ({ email }: Customer, password: string) =>
  stack.anybody.post('/v1/clients/login', { email, password });

const change = ({ session }: Customer, current: string, wanted = fresh) =>
  session.post('/v1/clients/password', { current_password: current, new_password: wanted });

const enableMfa = async ({ session }: Customer): Promise<string> => {
  const { data } = await session.post('/v1/clients/security/mfa/enroll', undefined);
  const secret = String(data.secret);
  await session.post('/v1/clients/security/mfa/confirm', { code: appCode(secret, Date.now()) });
  return secret;
};

const answerWith = (token: unknown, code: string) =>
  createClient(stack.url, String(token)).post('/v1/clients/security/login/mfa', { code });

test.serial('a login under way when the password changes opens nothing', async (t) => {
  const who = await stack.customer();
  const held = holdNext(stack.api.passwords, 'check');
  const login = logIn(who, who.password);
  await held.reached;
  t.is((await change(who, who.password)).status, 200);
  held.release();
  t.is((await login).error.code, 'INVALID_CREDENTIALS');
  t.is((await logIn(who, fresh)).status, 200);
});

test.serial('many logins beside a change: none with the old password lives on', async (t) => {
  const who = await stack.customer();
  const [logins, changed] = await Promise.all([
    Promise.all(Array.from({ length: 12 }, () => logIn(who, who.password))),
    change(who, who.password),
  ]);
  t.is(changed.status, 200);
  for (const { data } of logins.filter(({ status }) => status === 200)) {
    const session = createClient(stack.url, String(data.session_token));
    t.is((await session.get('/v1/clients/me')).error.code, 'INVALID_SESSION');
  }
});

test.serial(
  'a login under way when a second factor is set up opens nothing without it',
  async (t) => {
    const who = await stack.customer();
    const held = holdNext(stack.api.passwords, 'check');
    const login = logIn(who, who.password);
    await held.reached;
    await enableMfa(who);
    held.release();
    t.is((await login).error.code, 'INVALID_CREDENTIALS');
    t.true((await logIn(who, who.password)).data.mfa_required);
  },
);

test.serial('a login under way when the account is suspended opens nothing', async (t) => {
  const who = await stack.customer();
  const held = holdNext(stack.api.passwords, 'check');
  const login = logIn(who, who.password);
  await held.reached;
  await stack.api.accounts.setStatus(who.accountId, 'suspended');
  held.release();
  t.is((await login).error.code, 'ACCOUNT_SUSPENDED');
});

test.serial('of two changes with one password the second is refused', async (t) => {
  const who = await stack.customer();
  const held = holdNext(stack.api.passwords, 'check');
  const late = change(who, who.password, 'what the thief wants');
  await held.reached;
  t.is((await change(who, who.password)).status, 200);
  held.release();
  t.is((await late).error.code, 'INVALID_CREDENTIALS');
  t.is((await logIn(who, fresh)).status, 200);
});

const storeHash = (accountId: string, password_hash: string) =>
  stack.api
    .db('accounts')
    .where({ id: idBytes(accountId) })
    .update({ password_hash });

const oldHash = (password: string) =>
  hash(password, { memoryCost: 8 * 1024, timeCost: 1, parallelism: 1 });

test.serial('renewing a hash does not bring an old password back', async (t) => {
  const who = await stack.customer();
  await storeHash(who.accountId, await oldHash(who.password));
  const held = holdNext(stack.api.passwords, 'check');
  const login = logIn(who, who.password);
  await held.reached;
  t.is((await change(who, who.password)).status, 200);
  held.release();
  t.is((await login).error.code, 'INVALID_CREDENTIALS');
  t.is((await logIn(who, fresh)).status, 200);
  t.is((await logIn(who, who.password)).status, 401);
});

test.serial('two logins that renew one hash both succeed', async (t) => {
  const who = await stack.customer();
  await storeHash(who.accountId, await oldHash(who.password));
  const held = holdNext(stack.api.passwords, 'check');
  const first = logIn(who, who.password);
  await held.reached;
  t.is((await logIn(who, who.password)).status, 200);
  held.release();
  t.is((await first).status, 200);
});

test.serial('a login that waits for its code ends with the password it began with', async (t) => {
  const who = await stack.customer();
  await enableMfa(who);
  const { data } = await who.session.post('/v1/clients/security/mfa/recovery', {
    password: who.password,
  });
  const [first = '', second = ''] = data.recovery_codes as string[];
  const waiting = (await logIn(who, who.password)).data.mfa_token;
  t.is((await change(who, who.password)).status, 200);
  t.is((await answerWith(waiting, first)).error.code, 'INVALID_SESSION');

  const next = (await logIn(who, fresh)).data.mfa_token;
  await forceLogout(stack.api, who.accountId);
  t.is((await answerWith(next, second)).error.code, 'INVALID_SESSION');
});

test.serial('a code being checked while the password changes opens nothing', async (t) => {
  const who = await stack.customer();
  await enableMfa(who);
  const { data } = await who.session.post('/v1/clients/security/mfa/recovery', {
    password: who.password,
  });
  const [code = ''] = data.recovery_codes as string[];
  const waiting = (await logIn(who, who.password)).data.mfa_token;
  const held = holdNext(stack.api.factors, 'useRecoveryCode');
  const answer = answerWith(waiting, code);
  await held.reached;
  t.is((await change(who, who.password)).status, 200);
  held.release();
  t.is((await answer).error.code, 'INVALID_SESSION');
});

/** Waits until a statement that locks accounts or sessions of this database has been at it for some rounds. */
const somebodyWaits = async (t: ExecutionContext): Promise<void> => {
  let rounds = 0;
  await eventually(t, async () => {
    const [rows] = (await stack.api.db.raw(
      `SELECT COUNT(*) AS waiting FROM information_schema.PROCESSLIST
       WHERE DB = DATABASE() AND (INFO LIKE '%for update' OR INFO LIKE 'update \`sessions\`%')`,
    )) as [{ waiting: number }[]];
    rounds = Number(rows[0]?.waiting) > 0 ? rounds + 1 : 0;
    return rounds > 4 ? true : undefined;
  });
};

test.serial('an end of all sessions waits for a login without holding what it needs', async (t) => {
  const { accountId } = await stack.customer();
  const { db, sessions } = stack.api;
  const account_id = idBytes(accountId);
  for (let time = 0; time < 5; time++) await stack.sessionOf(accountId);
  const login = await db.transaction();
  await login('accounts').where({ id: account_id }).forUpdate().first('id');
  const [oldest] = await login('sessions').where({ account_id }).limit(1);
  await login('sessions').insert({ ...oldest, id: idBytes(newId()) });
  const ending = sessions.revokeAll(accountId, Date.now(), { reason: 'revoked' });
  await somebodyWaits(t);
  await t.notThrowsAsync(async () => {
    await login('sessions').where({ id: oldest.id }).update({ revoked_at: Date.now() });
  });
  await login.commit();
  t.is(await ending, 6);
});

test.serial(
  'logins beside ends of all sessions: no error, and the books of twenty hold',
  async (t) => {
    const who = await stack.customer();
    for (let time = 0; time < 20; time++) await stack.sessionOf(who.accountId);
    const mixed = Array.from({ length: 30 }, (_, index) =>
      index % 3 === 0
        ? stack.api.sessions.revokeAll(who.accountId, Date.now(), { reason: 'revoked' })
        : stack.sessionOf(who.accountId),
    );
    const settled = await Promise.allSettled<unknown>(mixed);
    t.deepEqual(
      settled.filter(({ status }) => status === 'rejected'),
      [],
    );
    t.true((await stack.api.sessions.list(who.accountId, Date.now())).length <= 20);
  },
);
