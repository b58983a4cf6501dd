// A member that is named twice is noticed, and nothing else is taken for one.
import test from 'ava';
import fc from 'fast-check';
import { namesTwice } from '../../lib/kernel/json-members.ts';

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
