// A member that is named twice is noticed, and nothing else is taken for one.
import test from 'ava';
import fc from 'fast-check';
import { validate } from '../../api/validate.ts';
import { namesTwice } from '../../lib/kernel/json-members.ts';
import { object, optional, text } from '../../lib/kernel/schema.ts';

const twice = (text: string): boolean => namesTwice(text, JSON.parse(text));

test('whatever JSON.stringify writes names each member once', (t) => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      t.false(twice(JSON.stringify(value, undefined, 1)));
    }),
  );
});

test('a member that is repeated anywhere is noticed', (t) => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.string(), fc.jsonValue(), (value, name, other) => {
      const member = `${JSON.stringify(name)}:${JSON.stringify(other)}`;
      t.true(twice(`[${JSON.stringify(value)},{${member},${member}}]`));
    }),
  );
});

test('names are compared as they are read, not as they are written', (t) => {
  t.true(twice('{"a":1,"\\u0061":2}'));
  t.true(twice('{"__proto__":1,"__proto__":2}'));
  t.false(twice('{"__proto__":{"a":":"},"b\\\\":"\\":"}'));
});

test('a member named __proto__ is refused as unknown, wherever it stands', (t) => {
  const schema = object({ name: text(), more: optional(object({ of: text() })) });
  const refused = (body: string) =>
    t.throws(() => validate(schema, JSON.parse(body), { name: 'body' }), { any: true }, body);
  for (const body of [
    '{"name":"a","__proto__":{"more":{"of":5}}}',
    '{"name":"a","\\u005f_proto__":null}',
    '{"name":"a","more":{"of":"b","__proto__":{}}}',
  ]) {
    t.like(refused(body), {
      code: 'VALIDATION_ERROR',
      extras: { details: [{ field: '__proto__', issue: 'is not allowed' }] },
    });
  }
  t.deepEqual(validate(schema, JSON.parse('{"name":"__proto__"}'), { name: 'body' }), {
    name: '__proto__',
  });
});
