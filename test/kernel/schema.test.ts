// Schemas: one value that checks and exports; and the errors that are meant for callers.
import { Ajv2020 } from 'ajv/dist/2020.js';
import test from 'ava';
import { errorCatalogue, fail, invalid, ServiceError } from '../../lib/kernel/errors.ts';
import {
  flag,
  integer,
  list,
  nullable,
  object,
  oneOf,
  optional,
  record,
  text,
  toJsonSchema,
} from '../../lib/kernel/schema.ts';

const schema = object({
  name: text().max(5),
  count: integer().min(1),
  kind: oneOf('a', 'b'),
  note: optional(text()),
  at: nullable(integer()),
  flags: list(flag()),
  inner: object({ deep: text() }),
});

const whole = {
  ...{ name: 'x', count: 1, kind: 'a', at: null, flags: [true] },
  inner: { deep: 'y' },
};

const wrong: Record<string, unknown>[] = [
  {},
  { ...whole, name: 'toolong' },
  { ...whole, name: 7 },
  { ...whole, count: 0 },
  { ...whole, count: 1.5 },
  { ...whole, count: '1' },
  { ...whole, kind: 'c' },
  { ...whole, kind: null },
  { ...whole, at: 'x' },
  { ...whole, note: null },
  { ...whole, flags: [1] },
  { ...whole, flags: true },
  { ...whole, inner: {} },
  { ...whole, inner: { deep: 'y', more: 1 } },
  { ...whole, surplus: 1 },
];

test('all members are required but optional ones, and unknown ones are refused', (t) => {
  const check = (value: unknown) => schema.validate(value, { convert: false }).error;
  t.is(check(whole), undefined);
  t.is(check({ ...whole, note: 'n' }), undefined);
  for (const value of wrong) t.truthy(check(value), JSON.stringify(value));
});

test('the JSON Schema of a schema lets the same through', (t) => {
  const validate = new Ajv2020({ strict: false }).compile(toJsonSchema(schema));
  t.true(validate(whole));
  t.true(validate({ ...whole, note: 'n' }));
  for (const value of wrong) t.false(validate(value), JSON.stringify(value));
});

test('a record takes members of any name', (t) => {
  t.is(record().validate({ anything: { at: ['all'] } }).error, undefined);
  t.truthy(record().validate([]).error);
});

test('an error says its code, the catalogue’s sentence, its members, and keeps its cause to itself', (t) => {
  const cause = new Error('inner');
  const error = fail('RATE_LIMIT_EXCEEDED', { retry_after_seconds: 3 }, { cause });
  t.true(error instanceof ServiceError && error instanceof Error);
  t.is(error.message, errorCatalogue.RATE_LIMIT_EXCEEDED.message);
  t.deepEqual(error.extras, { retry_after_seconds: 3 });
  t.is(error.cause, cause);
  t.false(JSON.stringify(error).includes('inner'));
  const details = [{ field: 'phone', issue: 'is required' }];
  t.deepEqual(invalid(...details).extras, { details });
  t.is(invalid(...details).code, 'VALIDATION_ERROR');
});
