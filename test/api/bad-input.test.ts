// Requests that are not valid: always a 4xx in the envelope that names the field, and never an effect (spec sections 1 and 7).
import test, { type ExecutionContext } from 'ava';
import type { JsonRoute } from '../../api/route.ts';
import { routes } from '../../api/routes.ts';
import { openRedisKeys, type RedisKeys } from '../support/redis-keys.ts';
import { errorIn, withoutEffect } from '../support/refusals.ts';
import { type Customer, type Stack, startStack } from '../support/stack.ts';
import { sendRaw } from '../support/wire.ts';

let stack: Stack;
let customer: Customer;
let redis: RedisKeys;

test.before(async () => {
  stack = await startStack('badinput');
  customer = await stack.customer();
  redis = openRedisKeys();
});
test.after.always(async () => {
  redis?.close();
  await stack?.close();
});

type Member = { kind: string; valid: unknown };

const jsonRoutes = routes.filter((route): route is JsonRoute => route.kind === 'json');
const samples: Record<string, unknown> = { phone: '+14155550123', code: '493027' };
const fieldsOf = (route: JsonRoute) => Object.keys((route.body?.describe().keys ?? {}) as object);

// Calls with fields of their own have the bounds of these in tests of their own.
const bodyRoutes = jsonRoutes.filter(
  (route) => route.body && route.auth === 'key' && fieldsOf(route).every((name) => name in samples),
);

const membersOf = (route: JsonRoute): Record<string, Member> =>
  Object.fromEntries(
    fieldsOf(route).map((name) => [name, { kind: 'string', valid: samples[name] }]),
  );
const validBody = (route: JsonRoute): Record<string, unknown> =>
  Object.fromEntries(Object.entries(membersOf(route)).map(([name, { valid }]) => [name, valid]));

const bearer = (key = customer.live.key): [string, string] => ['Authorization', `Bearer ${key}`];
const asJson: [string, string] = ['Content-Type', 'application/json'];

const call = (route: JsonRoute, body: string | Buffer, headers = [bearer(), asJson]) =>
  sendRaw(stack.url, { method: route.method, path: route.path, headers, body });

/** The body is refused with VALIDATION_ERROR and a detail about `field`, which does not repeat the value. */
const refusesField = async (
  t: ExecutionContext,
  route: JsonRoute,
  body: string | Buffer,
  field: string,
): Promise<void> => {
  const what = `${route.method} ${route.path} ${String(body).slice(0, 80)}`;
  const answer = await call(route, body);
  const error = errorIn(t, answer, what);
  t.is(answer.status, 400, what);
  t.is(error.code, 'VALIDATION_ERROR', what);
  const issues = (error.details ?? []).filter((detail) => detail.field === field);
  t.true(issues.length > 0, `${what}: ${answer.body}`);
};

const wrongTypes = [42, 3.5, true, false, null, [], ['+14155550123'], {}, { $gt: '' }];
const malformed: Record<string, string[]> = {
  phone: [
    '14155550123',
    '+1415 555 0123',
    ' +14155550123',
    '+14155550123 ',
    '+14155550123\n',
    '+04155550123',
    '+1234567890123456',
    '+123456',
    '+',
    '',
    '++14155550123',
    '+1415555٠١٢٣',
    '+1415555O123',
    "+1415555' OR 1=1",
    'tel:+14155550123',
  ],
  code: [
    '12345',
    '1234567',
    'abcdef',
    '12345a',
    '',
    '١٢٣٤٥٦',
    ' 123456',
    '123456\n',
    '-12345',
    '1e5000',
  ],
};
const tooLong = ['9'.repeat(300), '+'.repeat(10_000), '\u0000'.repeat(500), '😀'.repeat(2_000)];

for (const route of bodyRoutes) {
  const name = `${route.method} ${route.path}`;

  test.serial(`${name}: each field with a wrong type, form or length is named`, async (t) => {
    await withoutEffect(t, { stack, redis }, async () => {
      for (const field of Object.keys(membersOf(route))) {
        for (const value of [...wrongTypes, ...(malformed[field] ?? []), ...tooLong]) {
          const body = JSON.stringify({ ...validBody(route), [field]: value });
          await refusesField(t, route, body, field);
        }
      }
    });
  });

  test.serial(`${name}: each missing and each unknown field is named`, async (t) => {
    await withoutEffect(t, { stack, redis }, async () => {
      const whole = validBody(route);
      for (const field of Object.keys(whole)) {
        const { [field]: _, ...rest } = whole;
        await refusesField(t, route, JSON.stringify(rest), field);
        await refusesField(t, route, '{}', field);
        await refusesField(t, route, '', field);
      }
      for (const surplus of ['surplus', 'Phone', 'constructor', 'phone ']) {
        await refusesField(t, route, JSON.stringify({ ...whole, [surplus]: 'x' }), surplus);
      }
    });
  });

  test.serial(`${name}: a body that is no JSON object is refused`, async (t) => {
    await withoutEffect(t, { stack, redis }, async () => {
      const broken = [
        'null',
        '[]',
        '"x"',
        '42',
        'true',
        '{',
        '{"phone":',
        '\u0000',
        '[[',
        '   ',
        "{'a':1}",
      ];
      const deep = `${'['.repeat(30_000)}${']'.repeat(30_000)}`;
      for (const body of [...broken, deep]) await refusesField(t, route, body, 'body');
      await refusesField(t, route, Buffer.from([0xff, 0xfe, 0x7b, 0x00]), 'body');
      const twice = JSON.stringify(validBody(route)).replace(
        '{',
        '{"phone":"+14155550123","phone":1,',
      );
      await refusesField(t, route, twice, 'body');
      const poisoned = `{"phone":"+14155550123","__proto__":{"phone":"+14155550123"}}`;
      errorIn(t, await call(route, poisoned), 'a poisoned prototype');
      const nested = `{"phone":${'['.repeat(20_000)}${']'.repeat(20_000)}}`;
      errorIn(t, await call(route, nested), 'deep nesting');
    });
  });

  test.serial(`${name}: other media types and encodings are 415`, async (t) => {
    await withoutEffect(t, { stack, redis }, async () => {
      const body = JSON.stringify(validBody(route));
      const types = [
        'text/plain',
        'application/x-www-form-urlencoded',
        'multipart/form-data',
        'text/json',
        'x',
      ];
      for (const type of types) {
        const error = errorIn(t, await call(route, body, [bearer(), ['Content-Type', type]]), type);
        t.is(error.code, 'UNSUPPORTED_MEDIA_TYPE', type);
      }
      t.is(
        errorIn(t, await call(route, body, [bearer()]), 'no type').code,
        'UNSUPPORTED_MEDIA_TYPE',
      );
      for (const encoding of ['gzip', 'br', 'deflate', 'nonsense']) {
        const coded = await call(route, body, [bearer(), asJson, ['Content-Encoding', encoding]]);
        t.is(coded.status, 415, encoding);
        t.is(errorIn(t, coded, encoding).code, 'UNSUPPORTED_MEDIA_TYPE');
      }
    });
  });

  test.serial(`${name}: 64 KiB and a byte are 413, with a length or without`, async (t) => {
    await withoutEffect(t, { stack, redis }, async () => {
      const body = JSON.stringify(validBody(route)).padEnd(65_537, ' ');
      t.is(errorIn(t, await call(route, body), 'by length').code, 'PAYLOAD_TOO_LARGE');
      const chunk = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
      const headers = [bearer(), asJson, ['Transfer-Encoding', 'chunked'] as [string, string]];
      const chunked = await call(route, chunk, headers);
      t.is(chunked.status, 413);
      t.is(errorIn(t, chunked, 'in chunks').code, 'PAYLOAD_TOO_LARGE');
    });
  });
}

test.serial('nothing in this file reached a provider', (t) => {
  const { whatsapp, telegram } = stack.sim.stats();
  t.deepEqual({ whatsapp, telegram }, { whatsapp: {}, telegram: {} });
});

const esc = '\u001b[2J';
const turned = 'Ada \u202Egnp.exe';

test.serial(
  'no text that people read takes control characters or turns of direction',
  async (t) => {
    const person = { name: 'Ada', phone: '+14155550123' };
    const signUp = { ...person, email: 'plain@ex.test', password: 'a long enough password' };
    const wishes = { requested_sustained_per_minute: 600 };
    const why = 'Because there is a reason of some length.';
    const calls: [string, string, Record<string, unknown>, string][] = [
      ['POST', '/v1/clients/register', signUp, 'name'],
      ['POST', '/v1/clients/register', signUp, 'company'],
      ['PATCH', '/v1/clients/profile', {}, 'name'],
      ['PATCH', '/v1/clients/profile', {}, 'company'],
      ['POST', '/v1/clients/keys', { mode: 'test' }, 'name'],
      [
        'POST',
        '/v1/clients/capacity-requests',
        { ...wishes, business_justification: why },
        'business_justification',
      ],
      [
        'POST',
        '/v1/clients/capacity-requests',
        { ...wishes, business_justification: why },
        'supporting_facts',
      ],
      [
        'POST',
        '/v1/clients/connect-whatsapp',
        { phone_number_id: '106540352242922', access_token: 'token' },
        'display_name',
      ],
    ];
    for (const [method, path, body, field] of calls) {
      for (const bad of [`${why} ${esc}`, `${why} ${turned}`]) {
        const value = field === 'name' ? bad.slice(-20) : bad;
        const sent = JSON.stringify({ ...body, [field]: value });
        const headers = [bearer(customer.session.key), asJson];
        const answer = await sendRaw(stack.url, { method, path, headers, body: sent });
        const what = `${method} ${path} ${field}`;
        const error = errorIn(t, answer, what);
        t.is(answer.status, 400, what);
        t.is(error.code, 'VALIDATION_ERROR', what);
        const issues = (error.details ?? []).filter((detail) => detail.field === field);
        t.regex(issues[0]?.issue ?? '', /^must not hold U\+(001B|202E): /, what);
      }
    }
  },
);
