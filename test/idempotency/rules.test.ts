// What an Idempotency-Key may be, and when two requests are the same.
import test from 'ava';
import fc from 'fast-check';
import {
  canonicalJson,
  idempotencyKeyHash,
  parseIdempotencyKey,
  requestFingerprint,
} from '../../lib/idempotency/rules.ts';

test('a key is 1 to 255 visible ASCII characters, with or without its quotes', (t) => {
  t.is(parseIdempotencyKey('order-17'), 'order-17');
  t.is(parseIdempotencyKey('"order-17"'), 'order-17');
  t.is(parseIdempotencyKey('""order""'), '"order"', 'one pair only');
  t.is(parseIdempotencyKey('"'), '"');
  t.is(parseIdempotencyKey('a"b'), 'a"b');
  t.is(parseIdempotencyKey('x'.repeat(255))?.length, 255);
  t.is(parseIdempotencyKey(`"${'x'.repeat(255)}"`)?.length, 255);
});

test('anything else is no key', (t) => {
  const wrong = ['', '""', 'a b', ' ', 'a\tb', 'a\nb', 'ключ', '\u007f', 'é', 'x'.repeat(256)];
  for (const text of wrong) t.is(parseIdempotencyKey(text), undefined, JSON.stringify(text));
});

test('a record belongs to an account, a mode and a key; no two of them run together', (t) => {
  const scope = { accountId: 'a', mode: 'live', key: 'k' } as const;
  const hash = idempotencyKeyHash(scope);
  t.regex(hash, /^[0-9a-f]{64}$/);
  t.is(idempotencyKeyHash({ ...scope }), hash);
  const others = [
    idempotencyKeyHash({ ...scope, mode: 'test' }),
    idempotencyKeyHash({ ...scope, accountId: 'b' }),
    idempotencyKeyHash({ ...scope, key: 'K' }),
  ];
  t.is(new Set([hash, ...others]).size, 4);
});

const request = {
  ...{ key: 'k', method: 'POST', route: '/v1/otp/deliver' },
  body: { phone: '+15550001111', code: '123456' },
};

test('the order of members and the case of the method make no difference', (t) => {
  const body = { code: '123456', phone: '+15550001111' };
  t.is(requestFingerprint({ ...request, method: 'post', body }), requestFingerprint(request));
});

test('route, method, any value and the key itself do', (t) => {
  const prints = [
    requestFingerprint(request),
    requestFingerprint({ ...request, route: '/v1/otp/send' }),
    requestFingerprint({ ...request, method: 'PUT' }),
    requestFingerprint({ ...request, body: { ...request.body, code: '123457' } }),
    requestFingerprint({ ...request, body: { ...request.body, code: 123456 } }),
    requestFingerprint({ ...request, body: { phone: '+15550001111' } }),
    requestFingerprint({ ...request, key: 'other' }),
  ];
  t.is(new Set(prints).size, prints.length);
});

test('canonical text is that of the same JSON value, however its members are shuffled', (t) => {
  const shuffled = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(shuffled);
    if (value === null || typeof value !== 'object') return value;
    const members = Object.entries(value).toReversed();
    return Object.fromEntries(members.map(([name, member]) => [name, shuffled(member)]));
  };
  const property = fc.property(fc.jsonValue(), (value) => {
    const text = canonicalJson(value);
    t.is(canonicalJson(shuffled(value)), text);
    t.is(canonicalJson(JSON.parse(text)), text);
  });
  fc.assert(property, { seed: 20_261_120, endOnFailure: true });
  t.is(canonicalJson({ b: 1, a: [{ d: null, c: undefined }] }), '{"a":[{"d":null}],"b":1}');
  t.is(canonicalJson(undefined), 'null');
});
