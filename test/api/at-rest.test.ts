// A dump of the database holds nothing that opens anything: every secret that was issued is looked for in every table.
import test from 'ava';
import { appCode } from '../support/authenticator.ts';
import { createClient } from '../support/client.ts';
import { uniqueName } from '../support/names.ts';
import { eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;

test.before(async () => {
  stack = await startStack('atrest');
});
test.after.always(() => stack?.close());

/** All rows of all tables as one text; binary columns as hex, text and the text of their bytes. */
const dump = async (): Promise<string> => {
  const { db } = stack.api;
  const [tables] = (await db.raw('SHOW TABLES')) as [Record<string, string>[]];
  const parts: string[] = [];
  for (const row of tables) {
    const [name = ''] = Object.values(row);
    const rows = (await db(name).select()) as Record<string, unknown>[];
    parts.push(`${name}\n`);
    for (const value of rows.flatMap((each) => Object.values(each))) {
      const bytes = Buffer.isBuffer(value) ? [value.toString('hex'), value.toString('latin1')] : [];
      parts.push(...bytes, typeof value === 'object' ? JSON.stringify(value) : String(value));
    }
  }
  return parts.join('\n');
};

test('no issued key, token, password, seed or code is in any table', async (t) => {
  const password = 'a rather unusual password';
  const email = `${uniqueName('rest')}@example.com`;
  const phone = stack.phone();
  const post = (path: string, body: unknown) => stack.anybody.post(`/v1/clients/${path}`, body);
  await post('register', { email, password, name: 'Ada', phone: phone.number });
  const login = (await post('login', { email, password })).data;
  const session = createClient(stack.url, String(login.session_token));
  const keys = (await session.post('/v1/clients/signup-secret', undefined)).data.keys as object;
  const another = (await session.post('/v1/clients/keys', { name: 'x' })).data.key;
  const hook = (await session.post('/v1/clients/webhook-secret/rotate', undefined)).data;
  const seed = (await session.post('/v1/clients/security/mfa/enroll', undefined)).data.secret;
  const code = appCode(String(seed), Date.now());
  const confirmed = await session.post('/v1/clients/security/mfa/confirm', { code });
  const challenge = (await post('login', { email, password })).data.mfa_token;
  const [live] = Object.values(keys) as string[];
  await createClient(stack.url, live).send(phone.number);
  const sent = await eventually(t, () => phone.code());

  const recovery = confirmed.data.recovery_codes as string[];
  const secrets = [
    ...[password, login.session_token, login.refresh_token, another, hook.webhook_secret],
    ...[seed, challenge, ...Object.values(keys), ...recovery],
    ...recovery.map((each) => each.replaceAll('-', '')),
    String(hook.webhook_secret).slice('whsec_'.length),
  ].map(String);
  const text = await dump();
  t.true(text.includes(email), 'the dump holds what is no secret');
  for (const secret of secrets) {
    t.true(secret.length > 8);
    t.false(text.includes(secret), `${secret.slice(0, 6)}… is in the database`);
    t.false(text.includes(Buffer.from(secret).toString('hex')));
  }
  t.notRegex(text, new RegExp(`(?<![0-9a-f])${sent}(?![0-9a-f])`), 'the code is in the database');
});
