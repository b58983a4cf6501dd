// Paths, methods, headers and sizes that are not valid, and those at the edge that are (spec sections 1 and 7).
import { connect } from 'node:net';
import { buffer } from 'node:stream/consumers';
import test from 'ava';
import { routes } from '../../api/routes.ts';
import { aNumber } from '../support/phones.ts';
import { openRedisKeys, type RedisKeys } from '../support/redis-keys.ts';
import { errorIn, withoutEffect } from '../support/refusals.ts';
import { type Customer, type Stack, startStack } from '../support/stack.ts';
import { sendRaw } from '../support/wire.ts';

let stack: Stack;
let customer: Customer;
let redis: RedisKeys;

test.before(async () => {
  stack = await startStack('badrequest');
  customer = await stack.customer();
  redis = openRedisKeys();
});
test.after.always(async () => {
  redis?.close();
  await stack?.close();
});

const bearer = (): [string, string] => ['Authorization', `Bearer ${customer.live.key}`];
const asJson: [string, string] = ['Content-Type', 'application/json'];

test.serial('a body of exactly 64 KiB is taken', async (t) => {
  const phone = aNumber();
  const raw = JSON.stringify({ phone }).padEnd(65_536, ' ');
  const sent = await customer.test.call('POST', '/v1/otp/send', { raw });
  t.is(sent.status, 200, sent.text);
  const coded = JSON.stringify({ phone, code: '123456' }).padEnd(65_536, ' ');
  t.is((await customer.test.call('POST', '/v1/otp/verify', { raw: coded })).status, 200);
});

test.serial('a charset parameter of the media type is fine', async (t) => {
  const headers = { 'content-type': 'Application/JSON; charset=UTF-8' };
  const raw = JSON.stringify({ phone: aNumber() });
  t.is((await customer.test.call('POST', '/v1/otp/send', { raw, headers })).status, 200);
});

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'HEAD', 'PROPFIND'];

test.serial('another method is 405 with the methods that are allowed', async (t) => {
  await withoutEffect(t, { stack, redis }, async () => {
    for (const path of new Set(routes.map((route) => route.path))) {
      const own = routes.filter((route) => route.path === path).map((route) => route.method);
      const served = new Set<string>(own.includes('GET') ? [...own, 'HEAD'] : own);
      for (const method of methods.filter((candidate) => !served.has(candidate))) {
        const headers = [bearer()];
        const filled = path.replace(/\{\w+\}/, 'otp_x');
        const answer = await sendRaw(stack.url, { method, path: filled, headers });
        t.is(answer.status, 405, `${method} ${path}`);
        t.deepEqual((answer.headers.get('allow') ?? '').split(', ').sort(), [...own].sort());
        if (method !== 'HEAD') {
          t.is(errorIn(t, answer, `${method} ${path}`).code, 'METHOD_NOT_ALLOWED');
        }
      }
    }
  });
});

test.serial(
  'a path that is written out is not taken by a route with a parameter in its place',
  async (t) => {
    for (const [method, path, allow] of [
      ['DELETE', '/v1/clients/keys/rotate', 'POST'],
      ['DELETE', '/v1/clients/keys/rotate/', 'POST'],
      ['DELETE', '/v1/clients/security/sessions/revoke-others', 'POST'],
    ] as const) {
      const answer = await customer.session.call(method, path);
      t.is(answer.status, 405, `${method} ${path}: ${answer.text}`);
      t.is(answer.error.code, 'METHOD_NOT_ALLOWED');
      t.is(answer.headers.get('allow'), allow);
    }
  },
);

test.serial('paths are case-sensitive', async (t) => {
  for (const path of ['/V1/otp/send', '/v1/OTP/send', '/v1/clients/Keys/rotate', '/v1/otp/SEND/']) {
    const answer = await customer.test.call('POST', path, {
      raw: JSON.stringify({ phone: aNumber() }),
    });
    t.is(answer.status, 404, `${path}: ${answer.text}`);
    t.is(answer.headers.get('allow'), null);
  }
  for (const path of ['/HEALTH', '/Docs', '/DOCS/quickstart', '/Openapi.json']) {
    t.is((await sendRaw(stack.url, { method: 'GET', path })).status, 404, path);
  }
});

test.serial('two Host headers are 400, whatever they say', async (t) => {
  const { host } = new URL(stack.url);
  for (const second of [`Host: ${host}`, 'host: elsewhere.example', 'HOST:']) {
    const { status, body } = await sendBytes('GET /health HTTP/1.1', `Host: ${host}`, second);
    t.is(status, 400, `${second}: ${body}`);
    t.regex(body, /"code":"VALIDATION_ERROR".*"field":"Host","issue":"must be sent once"/);
  }
});

test.serial('unknown and broken paths are 404', async (t) => {
  const paths = [
    '/',
    '/v1',
    '/v1/otp',
    '/v2/otp/send',
    '/V1/OTP/SENDX',
    '/v1/otp/send/extra',
    '/v1//otp/send',
    '/v1/otp/status',
    '/v1/otp/%73end%2F',
    '/%E0%A4%A',
    '/v1/otp/%E0%A4%A',
    '/v1/otp/status/a/b',
    '/constructor',
    '/__proto__',
    `/${'x'.repeat(8_000)}`,
  ];
  await withoutEffect(t, { stack, redis }, async () => {
    for (const path of paths) {
      const answer = await sendRaw(stack.url, { method: 'GET', path, headers: [bearer()] });
      t.is(answer.status, 404, path.slice(0, 60));
      t.is(errorIn(t, answer, path.slice(0, 60)).code, 'NOT_FOUND');
    }
  });
});

/** Bytes as they stand: what `sendRaw` would not send. */
const sendBytes = async (...lines: string[]) => {
  const { hostname, port } = new URL(stack.url);
  const socket = connect(Number(port), hostname);
  socket.write(`${lines.join('\r\n')}\r\nConnection: close\r\n\r\n`);
  const [head = '', body = ''] = String(await buffer(socket)).split('\r\n\r\n');
  return { status: Number(head.split(' ')[1]), body };
};

test.serial(
  'a target or Host that is no address is refused or passed over, never a 500',
  async (t) => {
    for (const host of ['[', 'a b', '\u0001'.padEnd(3, ':'), '', '%']) {
      for (const path of ['/health', '/v1/inbound/whatsapp?hub.mode=subscribe']) {
        const { status, body } = await sendBytes(`GET ${path} HTTP/1.1`, `Host: ${host}`);
        t.true([200, 400, 403].includes(status), `${path} of "${host}": ${status} ${body}`);
      }
    }
    for (const target of ['http://[/health', '//a@[#']) {
      const { status, body } = await sendBytes(`GET ${target} HTTP/1.1`, 'Host: here');
      t.is(status, 400, `${target}: ${body}`);
      t.regex(body, /"code":"VALIDATION_ERROR".*"field":"path"/);
    }
    const nameless = await sendBytes('GET /health HTTP/1.1');
    t.is(nameless.status, 400);
    t.regex(nameless.body, /"field":"Host"/);
    t.is((await sendBytes('GET /health HTTP/1.0')).status, 200);
  },
);

test.serial('a message_id that can be none is 404 and leaves nothing in Redis', async (t) => {
  const ids = [
    '%E0%A4%A',
    'otp_',
    'otp_0192f0c1-7a3b-7c4d-8e5f-0123456789ab',
    'OTP_0192f0c1-7a3b-7c4d-8e5f-0123456789ab',
    '0192f0c1-7a3b-7c4d-8e5f-0123456789ab',
    '%2B14155550123',
    '..%2F..%2Fetc',
    "otp_'%20OR%201=1",
    '%00',
    'x'.repeat(8_000),
  ];
  await withoutEffect(t, { stack, redis }, async () => {
    for (const id of ids) {
      const path = `/v1/otp/status/${id}`;
      const answer = await sendRaw(stack.url, { method: 'GET', path, headers: [bearer()] });
      t.is(answer.status, 404, `${id.slice(0, 60)}: ${answer.body}`);
      t.is(errorIn(t, answer, id.slice(0, 60)).code, 'NOT_FOUND');
    }
    const names = await redis.names(stack.config.keyPrefix);
    t.deepEqual(
      names.filter((name) => /14155550123|xxxx|etc|OTP_/.test(name)),
      [],
    );
  });
});

test.serial('an Idempotency-Key is 1 to 255 visible ASCII characters', async (t) => {
  const wrong = [
    '',
    '""',
    'k'.repeat(256),
    `"${'k'.repeat(256)}"`,
    'two words',
    'caf\u00e9',
    'tab\there',
  ];
  await withoutEffect(t, { stack, redis }, async () => {
    for (const path of ['/v1/otp/send', '/v1/otp/deliver']) {
      const body = JSON.stringify({
        phone: aNumber(),
        ...(path.endsWith('send') ? {} : { code: '123456' }),
      });
      const call = (...keys: string[]) => {
        const named = keys.map((key) => ['Idempotency-Key', key] as const);
        return sendRaw(stack.url, {
          method: 'POST',
          path,
          body,
          headers: [bearer(), asJson, ...named],
        });
      };
      for (const key of wrong) {
        const error = errorIn(t, await call(key), `${path} ${key.slice(0, 20)}`);
        t.is(error.code, 'VALIDATION_ERROR', key.slice(0, 20));
        t.is(error.details?.[0]?.field, 'Idempotency-Key');
      }
      t.is(errorIn(t, await call('a', 'b'), 'two keys').code, 'VALIDATION_ERROR');
    }
  });
  const longest = await customer.test.send(aNumber(), { 'Idempotency-Key': 'k'.repeat(255) });
  t.is(longest.status, 200);
});

test.serial('an invalid body does not use an Idempotency-Key up', async (t) => {
  const once = { 'Idempotency-Key': 'not-used-up' };
  t.is((await customer.test.send('+0', once)).error.code, 'VALIDATION_ERROR');
  t.is((await customer.test.send(aNumber(), once)).status, 200);
});

test.serial('an odd X-Request-Id is replaced, a sound one is kept', async (t) => {
  const ask = async (value: string) => {
    const headers = [['X-Request-Id', value] as [string, string]];
    return (await sendRaw(stack.url, { method: 'GET', path: '/health', headers })).headers.get(
      'x-request-id',
    );
  };
  t.is(await ask('abc-123_x.y'), 'abc-123_x.y');
  for (const odd of ['', 'x'.repeat(65), 'two words', '{"a":1}', 'caf\u00e9', '+14155550123']) {
    t.regex((await ask(odd)) ?? '', /^[0-9a-f]{8}-[0-9a-f-]{27}$/, odd);
  }
});

test.serial(
  'numbers that cannot exist or only cost are INVALID_PHONE, before any limit',
  async (t) => {
    await withoutEffect(t, { stack, redis }, async () => {
      // Too short for its country; a country code nobody has; premium rate.
      for (const phone of ['+1415555', '+99912345678', '+19005550123']) {
        const refused = await customer.live.send(phone);
        t.is(refused.status, 400, refused.text);
        t.is(refused.error.code, 'INVALID_PHONE', phone);
        t.is((await customer.live.deliver(phone, '123456')).error.code, 'INVALID_PHONE', phone);
      }
    });
  },
);

const code = '123456';

test.serial(
  'a national prefix after the country code is INVALID_PHONE on every route that takes a phone, with the right form',
  async (t) => {
    const phone = '+4407911123456';
    const registration = {
      ...{ email: 'prefix@example.test', password: 'correct horse battery', name: 'P' },
      phone,
    };
    const calls: [Pick<Customer['live'], 'call'>, string, string, object][] = [
      [customer.live, 'POST', '/v1/otp/send', { phone }],
      [customer.test, 'POST', '/v1/otp/send', { phone }],
      [customer.live, 'POST', '/v1/otp/deliver', { phone, code }],
      [customer.live, 'POST', '/v1/otp/verify', { phone, code }],
      [customer.live, 'POST', '/v1/otp/telegram-link', { phone }],
      [customer.live, 'DELETE', '/v1/otp/telegram-link', { phone }],
      [customer.live, 'POST', '/v1/totp/enroll', { phone }],
      [customer.live, 'POST', '/v1/totp/verify', { phone, code }],
      [customer.live, 'POST', '/v1/totp/disable', { phone }],
      [stack.anybody, 'POST', '/v1/playground/send', { phone }],
      [stack.anybody, 'POST', '/v1/playground/verify', { phone, code }],
      [stack.anybody, 'POST', '/v1/clients/register', registration],
      [customer.session, 'PATCH', '/v1/clients/profile', { phone }],
    ];
    await withoutEffect(t, { stack, redis }, async () => {
      for (const [client, method, path, body] of calls) {
        const refused = await client.call(method, path, { body });
        t.is(refused.status, 400, `${method} ${path} ${refused.text}`);
        t.like(refused.error, { code: 'INVALID_PHONE', details: [{ field: 'phone' }] }, path);
        t.regex(String(refused.error.message), /\+447911123456/, path);
      }
      const both = await customer.live.post('/v1/otp/verify', { phone, code: '1' });
      t.is(both.error.code, 'VALIDATION_ERROR', 'one mistake of two');
    });
  },
);

test.serial(
  'both WhatsApp forms of one recipient share its limits, a code belongs to one',
  async (t) => {
    const pairs = [
      ['+5541987654321', '+554187654321'],
      ['+5491123456789', '+541123456789'],
    ] as const;
    for (const [one, other] of pairs) {
      const sent = await customer.live.deliver(one, '111111');
      t.is(sent.status, 200, sent.text);
      const again = await customer.live.deliver(other, '222222');
      t.like(again.error, { code: 'RATE_LIMIT_EXCEEDED', reason: 'cooldown' }, again.text);
      t.is((await customer.live.verify(other, '111111')).error.code, 'OTP_NOT_FOUND');
      t.is((await customer.live.verify(one, '111111')).status, 200);
      await customer.live.post('/v1/otp/telegram-link', { phone: one });
    }
  },
);

test.serial('five wrong codes at one form block the other form', async (t) => {
  const [one, other] = ['+5547987650001', '+554787650001'];
  const { test: sandbox } = await stack.customer();
  t.is((await sandbox.send(one)).status, 200);
  for (let left = 4; left >= 0; left--) {
    const wrong = await sandbox.verify(one, '222222');
    t.like(wrong.error, { code: 'INVALID_CODE', attempts_remaining: left });
  }
  t.is((await sandbox.verify(other, '123456')).error.code, 'TOO_MANY_ATTEMPTS');
});
