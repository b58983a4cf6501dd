// The OpenAPI document as a promise: every operation called with values from its own schemas, valid and nearly so. No
// answer is a 5xx, has a status that the document lacks, or is off its schema (the client checks the last two).
import test from 'ava';
import fc from 'fast-check';
import type { Answer } from '../support/client.ts';
import {
  callOperation,
  clientFor,
  type Field,
  type Filled,
  type Operation,
  operations,
  required,
  withField,
} from '../support/operations.ts';
import { type Customer, type Stack, startStack } from '../support/stack.ts';

type Json = Record<string, unknown>;

let stack: Stack;
let customer: Customer;

test.before(async () => {
  stack = await startStack('openapifuzz', { settings: { TRUSTED_PROXIES: '1' } });
  customer = await stack.customer();
});
test.after.always(() => stack?.close());

/** The same values in every run; another seed is set to look further. */
const seed = Number(process.env.TESSERA_FUZZ_SEED ?? 20_261_122);
const runsPerOperation = 8;

const typesOf = ({ type }: Json): unknown[] => (Array.isArray(type) ? type : [type]);

const textOf = (schema: Json): fc.Arbitrary<string> => {
  const { minLength = 0, maxLength = 60, pattern, format } = schema;
  if (pattern !== undefined) return fc.stringMatching(new RegExp(String(pattern)));
  if (format === 'uuid') return fc.uuid();
  if (format === 'email') return fc.emailAddress();
  const formats = (schema.anyOf ?? []) as Json[];
  if (formats.some((one) => one.format === 'date-time')) {
    const bounds = { min: new Date(0), max: new Date(4e12), noInvalidDate: true };
    return fc.date(bounds).map((at) => at.toISOString());
  }
  const bounds = { minLength: Number(minLength), maxLength: Math.min(Number(maxLength), 200) };
  return fc.oneof(fc.string(bounds), fc.string({ ...bounds, unit: 'binary' }));
};

const numberOf = (schema: Json): fc.Arbitrary<number> => {
  const { minimum = -1e6, maximum = 1e6, multipleOf } = schema;
  const [min, max] = [Number(minimum), Number(maximum)];
  if (typesOf(schema).includes('integer')) return fc.integer({ min, max });
  const step = Number(multipleOf ?? 0.01);
  return fc
    .integer({ min: Math.ceil(min), max: Math.floor(max) })
    .map((whole) => Math.min(max, whole + step));
};

/** Values that a schema takes. */
const validOf = (schema: Json): fc.Arbitrary<unknown> => {
  const own = Array.isArray(schema.enum)
    ? fc.constantFrom(...(schema.enum as unknown[]))
    : byType(schema);
  return typesOf(schema).includes('null') ? fc.oneof(own, fc.constant(null)) : own;
};

const byType = (schema: Json): fc.Arbitrary<unknown> => {
  const types = typesOf(schema);
  if (types.includes('string')) return textOf(schema);
  if (types.includes('boolean')) return fc.boolean();
  return numberOf(schema);
};

/** Values next to what a schema takes: of another type, too long, one too many. */
const nearlyOf = (schema: Json): fc.Arbitrary<unknown> =>
  fc.oneof(
    fc.constantFrom<unknown>('', 0, -1, true, null, [], {}, 1e21, 0.1234567),
    fc.string({ unit: 'binary', maxLength: 40 }),
    fc.constant('x'.repeat(Math.min(Number(schema.maxLength ?? 300), 4_000) + 1)),
    fc.constant(Number(schema.maximum ?? 1e9) + 1),
    fc.constant(Number(schema.minimum ?? 0) - 1),
  );

// An address cannot hold a list, and a header takes bytes alone.
const fits = ({ place }: Field, value: unknown): boolean => {
  if (place === 'body') return true;
  const text = String(value);
  if (place === 'path') return text !== '' && text !== '.' && text !== '..';
  return place === 'query' || /^[\u0021-\u007e]*$/.test(text);
};

const fieldValue = (field: Field): fc.Arbitrary<unknown> => {
  const example = fc.constant(field.example);
  const valid = fc.oneof(
    { weight: 3, arbitrary: example },
    { weight: 4, arbitrary: validOf(field.schema) },
  );
  return fc
    .oneof({ weight: 6, arbitrary: valid }, { weight: 1, arbitrary: nearlyOf(field.schema) })
    .filter((value) => fits(field, value));
};

/** Requests of an operation: what must be there, and some of what may be. */
const requestOf = (operation: Operation): fc.Arbitrary<Filled> =>
  fc
    .tuple(
      ...operation.fields.map((field) =>
        field.required
          ? fieldValue(field)
          : fc.option(fieldValue(field), { nil: undefined, freq: 2 }),
      ),
    )
    .map((values) =>
      operation.fields.reduce(
        (filled, field, index) =>
          values[index] === undefined ? filled : withField(filled, field, values[index]),
        required(operation),
      ),
    );

let address = 0;
const from = (): string => {
  address += 1;
  return `2001:db8:f:${address.toString(16)}::1`;
};

type Credential = 'own' | 'live' | 'test' | 'none';

const clientWith = (operation: Operation, credential: Credential) => {
  if (credential === 'own') return clientFor(stack, operation, customer);
  return { live: customer.live, test: customer.test, none: stack.anybody }[credential];
};

/**
 * The 5xx that the contract has for what a provider or billing did, with a code of its own. A plain 500 or 503 is none:
 * everything that this stack needs is there.
 */
const explained = new Set(['DELIVERY_FAILED', 'BILLING_ERROR', 'TELEGRAM_UNAVAILABLE']);

const isSound = ({ status, error }: Answer): boolean =>
  status < 500 || explained.has(error.code ?? '');

for (const operation of operations) {
  test.serial(`${operation.name} keeps what the document says of it (seed ${seed})`, async (t) => {
    customer = await stack.customer();
    const credentials = fc.oneof(
      { weight: 6, arbitrary: fc.constant<Credential>('own') },
      { weight: 2, arbitrary: fc.constantFrom<Credential>('live', 'test', 'none') },
    );
    const holds = fc.asyncProperty(
      requestOf(operation),
      credentials,
      async (filled, credential) => {
        const placed = { ...filled, header: { ...filled.header, 'X-Forwarded-For': from() } };
        const answer = await callOperation(clientWith(operation, credential), operation, placed);
        if (!isSound(answer)) throw new Error(`${answer.status} ${answer.text}`);
      },
    );
    await fc.assert(holds, {
      seed,
      numRuns: operation.fields.length === 0 ? 3 : runsPerOperation,
      // A failure shrinks by calls, each of which takes its time.
      endOnFailure: true,
    });
    t.pass();
  });
}
