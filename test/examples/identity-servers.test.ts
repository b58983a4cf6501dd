// The senders for Supabase, Logto, Ory Kratos and Zitadel, called as those systems document that they call.
import { createServer } from 'node:http';
import test, { type ExecutionContext } from 'ava';
import { createDeliver, type Deliver } from '../../examples/deliver/deliver.ts';
import { type Handler, toListener } from '../../examples/deliver/serve.ts';
import {
  authorization,
  type Call,
  hookSecret,
  json,
  kratos,
  kratosCall,
  logto,
  senders,
  signingKey,
  supabase,
  supabaseBody,
  supabaseCall,
  zitadel,
  zitadelBody,
  zitadelCall,
} from '../support/identity-servers.ts';
import { serveExample } from '../support/run-example.ts';
import { type Customer, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
let customer: Customer;
let live: Deliver;

test.before(async () => {
  stack = await startStack('examples_idp');
  customer = await stack.customer();
  live = createDeliver({ url: stack.url, key: customer.live.key ?? '' });
});
test.after.always(() => stack?.close());

/** The sandbox of an account of its own: a number may be asked for once in 30 seconds. */
const sandbox = async (): Promise<Deliver> => {
  const { test: key } = await stack.customer();
  return createDeliver({ url: stack.url, key: key.key ?? '' });
};

const ask = (handle: Handler, call: Call): Promise<Response> =>
  handle(new Request('http://localhost/', { method: 'POST', ...call }));

const delivered = async (t: ExecutionContext, handle: Handler, call: Call): Promise<void> => {
  const answer = await ask(handle, call);
  t.true(answer.ok, await answer.text());
};

for (const { name, file, environment, call, create } of senders) {
  test(`${name}: the code arrives, once however often the call is repeated`, async (t) => {
    const phone = stack.phone();
    const program = await serveExample(['node', file], {
      TESSERA_URL: stack.url,
      TESSERA_KEY: customer.live.key ?? '',
      ...environment,
    });
    t.teardown(program.stop);
    const url = `http://127.0.0.1:${program.port}/`;
    const given = call(phone.number, '408213');
    for (let time = 0; time < 3; time++) {
      const answer = await fetch(url, { method: 'POST', ...given });
      t.true(answer.ok, await answer.text());
    }
    t.deepEqual(
      (await phone.messages()).map(({ channel, code }) => [channel, code]),
      [['whatsapp', '408213']],
    );
  });

  test(`${name}: a call that failed in passing succeeds when it is repeated`, async (t) => {
    const phone = stack.phone();
    const handle = create(live);
    const given = call(phone.number, '408213');
    await phone.behave({ whatsapp: 'error:131009' });
    t.is((await ask(handle, given)).status, 503);
    t.deepEqual(await phone.messages(), []);
    await phone.behave({ whatsapp: 'ok' });
    await delivered(t, handle, given);
    t.is(await phone.code(), '408213');
  });

  test(`${name}: what others send is refused`, async (t) => {
    const handle = create(async () => t.fail('nothing was to be delivered') as never);
    const { body } = call('+14155552671', '408213');
    t.is((await ask(handle, { headers: json, body })).status, 401);
    const forged = { ...json, authorization: 'Bearer x', 'ZITADEL-Signature': 't=1,v1=00' };
    t.is((await ask(handle, { headers: forged, body })).status, 401);
  });

  test(`${name}: when Tessera cannot be reached, the call may be repeated`, async (t) => {
    const handle = create(createDeliver({ url: 'http://127.0.0.1:9', key: 'sk_test_x' }));
    t.is((await ask(handle, call('+14155552671', '408213'))).status, 503);
  });
}

const refusals: [phone: string, status: number][] = [
  ['+15550104001', 422],
  ['+15550104091', 422],
  ['+15550104291', 429],
  ['+15550104021', 500],
  ['+15550104092', 500],
  ['+15550105031', 503],
];

for (const { name, create, call } of [logto, kratos, zitadel]) {
  test(`${name}: reads from the status what helps`, async (t) => {
    const handle = create(await sandbox());
    for (const [phone, status] of refusals) {
      const answer = await ask(handle, call(phone, '408213'));
      const text = await answer.text();
      t.is(answer.status, status, text);
      t.notRegex(text, /408213|t\.me/, 'neither the code nor a link of the recipient');
    }
    const limited = await ask(handle, call('+15550104291', '408213'));
    t.is(limited.headers.get('retry-after'), '30');
  });
}

test('Supabase: reads from the answer what to tell the user', async (t) => {
  const handle = supabase.create(await sandbox());
  const words: Record<string, RegExp> = {
    '+15550104001': /cannot be reached/,
    '+15550104091': /^Open https:\S+ to get codes over Telegram/,
    '+15550104291': /Try again later/,
  };
  for (const [phone, status] of refusals) {
    const answer = await ask(handle, supabase.call(phone, '408213'));
    t.is(answer.status, status === 503 ? 503 : 200, 'other statuses hide the message');
    t.is(answer.headers.has('retry-after'), status === 503, 'Supabase repeats with it alone');
    t.is(answer.headers.get('content-type'), 'application/json');
    const { error } = (await answer.json()) as { error: { http_code: number; message: string } };
    t.is(error.http_code, status);
    t.regex(error.message, words[phone] ?? /could not be sent/);
  }
});

test('Supabase: the number of the message wins over the number of the user', async (t) => {
  const [old, fresh] = [stack.phone(), stack.phone()];
  const body = supabaseBody(old.number, '561166', { phone: fresh.number.slice(1) });
  await delivered(t, supabase.create(live), supabaseCall(body));
  t.deepEqual(await old.messages(), []);
  t.is(await fresh.code(), '561166');
});

test('Supabase: one good signature is enough, an old one is none', async (t) => {
  const handle = supabase.create(async () => ({ sent: true, messageId: 'msg_1' }));
  const body = supabaseBody('+14155552671', '561166');
  const other = `v1,whsec_${Buffer.from('another secret of 24 byte').toString('base64')}`;
  const good = supabaseCall(body);
  const bad = supabaseCall(body, other);
  t.is((await ask(handle, bad)).status, 401);
  // While a secret is being replaced, Supabase signs with both, a comma and a space between them.
  const both = `${bad.headers['webhook-signature']}, ${good.headers['webhook-signature']}`;
  const headers = { ...good.headers, 'webhook-signature': both };
  t.is((await ask(handle, { headers, body })).status, 200);
  t.is(
    (await ask(handle, supabaseCall(body, hookSecret, new Date(Date.now() - 600_000)))).status,
    401,
  );
});

test('Kratos: every kind of code is found, in both spellings', async (t) => {
  const kinds: [type: string, name: string][] = [
    ['login_code_valid', 'login_code'],
    ['registration_code_valid', 'registration_code'],
    ['verification_code_valid', 'verification_code'],
    ['recovery_code_valid', 'recovery_code'],
    ['verification_code', 'VerificationCode'],
  ];
  for (const [type, name] of kinds) {
    const found: string[] = [];
    const handle = kratos.create(async ({ code }) => {
      found.push(code);
      return { sent: true, messageId: 'msg_1' };
    });
    await delivered(t, handle, kratosCall('+14155552671', type, { [name]: '408213' }));
    t.deepEqual(found, ['408213'], type);
  }
});

test('Zitadel: the code of a second factor counts, and any of several signatures', async (t) => {
  const phone = stack.phone();
  const body = zitadelBody(phone.number, { oTP: '408213', expiry: 300_000_000_000 });
  const handle = zitadel.create(live);
  await delivered(t, handle, zitadelCall(body, Date.now(), ['the key before', signingKey]));
  t.is(await phone.code(), '408213');
  t.is((await ask(handle, zitadelCall(body, Date.now() - 301_000))).status, 401, 'too old');
  const signed = zitadelCall(body);
  t.is((await ask(handle, { ...signed, body: `${body} ` })).status, 401, 'the bytes count');
});

test('a message without a code says that there is nothing to deliver', async (t) => {
  const never: Deliver = async () => t.fail('nothing was to be delivered') as never;
  const invitation = { to: '+14155552671', type: 'OrganizationInvitation', payload: { link: 'x' } };
  const calls: [Handler, Call][] = [
    [logto.create(never), { headers: { authorization }, body: JSON.stringify(invitation) }],
    [kratos.create(never), kratosCall('+14155552671', 'recovery_valid', { recovery_url: 'x' })],
    [zitadel.create(never), zitadelCall(zitadelBody('+14155552671', {}))],
  ];
  for (const [handle, call] of calls) {
    const answer = await ask(handle, call);
    t.is(answer.status, 422);
    t.like(await answer.json(), { code: 'NOT_A_CODE' });
  }
});

test('a code that is not six digits is refused with the reason', async (t) => {
  const answer = await ask(zitadel.create(await sandbox()), zitadel.call('+14155552671', 'K7W2QD'));
  t.is(answer.status, 500);
  const text = await answer.text();
  t.regex(text, /VALIDATION_ERROR.*code: /);
  t.notRegex(text, /K7W2QD/);
});

test('a body larger than any identity server sends is refused before it is kept', async (t) => {
  const never: Handler = async () => t.fail('it was handed on') as never;
  const server = createServer(toListener(never));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  const body = 'x'.repeat(64 * 1024 + 1);
  t.is((await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body })).status, 413);
  server.close();
});
