// The OpenAPI document as a promise: every operation called with values from its own schemas, valid and nearly so. No
// answer is a 5xx, has a status that the document lacks, or is off its schema (the client checks the last two).
import test from 'ava';
import fc from 'fast-check';
import { type ErrorCode, errorCatalogue } from '../../lib/kernel/errors.ts';
import { magicNumbers } from '../../lib/otp/sandbox.ts';
import { type Answer, type Client, createClient } from '../support/client.ts';
import { earlierAnswers } from '../support/earlier-answers.ts';
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
import { listenAt, type Receiver, receive } from '../support/receivers.ts';
import { type Customer, type Stack, startStack } from '../support/stack.ts';

type Json = Record<string, unknown>;

let stack: Stack;
let customer: Customer;
let receiver: Receiver;

test.before(async () => {
  receiver = await receive();
  const settings = {
    TRUSTED_PROXIES: '1',
    WEBHOOK_ALLOWED_HOSTS: '127.0.0.1=*',
    PLAYGROUND: 'sandbox',
  };
  stack = await startStack('openapifuzz', { settings });
});
test.after.always(async () => {
  await stack?.close();
  receiver?.close();
});

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

/** Stands for a value that an earlier answer to this account gave; put in when the call is made. */
const earlier = Symbol('of an earlier answer');

const isEarlier = ({ name }: Operation, field: Field): boolean =>
  earlierAnswers[name]?.[field.name] !== undefined;

const fieldValue = (operation: Operation, field: Field): fc.Arbitrary<unknown> => {
  const example = fc.constant(isEarlier(operation, field) ? earlier : field.example);
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
          ? fieldValue(operation, field)
          : fc.option(fieldValue(operation, field), { nil: undefined, freq: 2 }),
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

const clientWith = async (operation: Operation, credential: Credential): Promise<Client> => {
  const { email, password, live, test: sandbox } = customer;
  if (credential === 'live') return live;
  if (credential === 'test') return sandbox;
  if (credential === 'none') return stack.anybody;
  if (operation.route.auth !== 'refresh') return clientFor(stack, operation, customer);
  const login = await stack.anybody.post(
    '/v1/clients/login',
    { email, password },
    { 'X-Forwarded-For': from() },
  );
  return createClient(stack.url, String(login.data.refresh_token));
};

/** The request with what earlier answers gave. */
const filledIn = async (operation: Operation, filled: Filled): Promise<Filled> => {
  let complete = filled;
  for (const field of operation.fields) {
    if (complete[field.place][field.name] !== earlier) continue;
    const give = earlierAnswers[operation.name]?.[field.name];
    const value = await give?.({ stack, customer, receiver: receiver.url });
    complete = withField(complete, field, value);
  }
  return complete;
};

const call = async (operation: Operation, filled: Filled, credential: Credential) => {
  const client = await clientWith(operation, credential);
  const given = await filledIn(operation, filled);
  const header = { ...given.header, 'X-Forwarded-For': from() };
  return callOperation(client, operation, { ...given, header });
};

/** A request that the operation is to take: what must be there, what changes something, and what earlier answers gave. */
const exampleOf = (operation: Operation): Filled =>
  operation.fields
    .filter((field) => isEarlier(operation, field) || operation.route.method === 'PATCH')
    .reduce(
      (filled, field) =>
        withField(filled, field, isEarlier(operation, field) ? earlier : field.example),
      required(operation),
    );

/** Operations that do not succeed here, and what they would need. Every other one must. */
const notTaken: Record<string, string> = {
  'POST /v1/totp/verify': 'a code of an authenticator',
  'POST /v1/playground/verify': 'the code that the visitor was shown',
  'POST /v1/clients/signup-secret': 'an account that has not heard its secret',
  'POST /v1/clients/password/reset': 'a code that a phone got',
  'POST /v1/clients/security/login/mfa': 'an account with a second factor',
  'POST /v1/clients/security/mfa/confirm': 'a code of an authenticator',
  'POST /v1/clients/security/mfa/disable': 'an account with a second factor',
  'POST /v1/clients/security/mfa/recovery': 'an account with a second factor',
  'POST /v1/clients/connect-whatsapp': 'a token of the provider',
  'POST /v1/clients/waba/embedded-signup': 'a code of the provider',
  'POST /v1/clients/waba/template/check': 'a connected number',
  'POST /v1/clients/waba/template/create': 'a connected number',
};

const sends = ['POST /v1/otp/send', 'POST /v1/otp/deliver', 'POST /v1/playground/send'];
const totp = ['POST /v1/totp/enroll', 'POST /v1/totp/verify', 'POST /v1/totp/disable'];

/** Every 5xx that may be seen here: what the sandbox plays for a number that stands for it, by code and operation. */
const played: Partial<Record<ErrorCode, readonly string[]>> = {
  DELIVERY_FAILED: sends,
  TELEGRAM_UNAVAILABLE: sends,
  CENTRAL_WHATSAPP_PAUSED: sends,
  FREE_TRIAL_PAUSED: sends,
  INTERNAL_ERROR: [...sends, ...totp],
  SERVICE_UNAVAILABLE: [...sends, ...totp],
  BILLING_ERROR: ['POST /v1/otp/verify', 'POST /v1/playground/verify', 'POST /v1/totp/verify'],
  TOTP_NOT_CONFIGURED: ['POST /v1/totp/enroll', 'POST /v1/totp/verify'],
};

const isFailure = ({ code }: { code: ErrorCode }): boolean => errorCatalogue[code].status >= 500;

type Called = { filled: Filled; credential: Credential };

const isPlayed = (
  operation: Operation,
  { filled, credential }: Called,
  { error }: Answer,
): boolean => {
  const inSandbox = credential === 'test' || operation.route.path.startsWith('/v1/playground/');
  const stands = magicNumbers.find(({ phone }) => phone === filled.body.phone);
  if (!inSandbox || stands === undefined || stands.code !== error.code) return false;
  return played[stands.code]?.includes(operation.name) ?? false;
};

test('every id that a path names is given by an earlier answer', (t) => {
  for (const operation of operations) {
    const inPath = operation.fields.filter(({ place }) => place === 'path');
    for (const field of inPath) t.true(isEarlier(operation, field), operation.name);
  }
  const names = operations.map(({ name }) => name);
  for (const name of [...Object.keys(notTaken), ...Object.keys(earlierAnswers)]) {
    t.true(names.includes(name), `${name} is no operation`);
  }
});

for (const operation of operations) {
  const { name, route } = operation;
  test.serial(`${name} keeps what the document says of it (seed ${seed})`, async (t) => {
    customer = await stack.customer();
    if (name === 'POST /v1/clients/webhooks/test') await listenAt(stack, customer, receiver.url);
    const first = await call(operation, exampleOf(operation), 'own');
    const success = route.kind === 'json' ? (route.status ?? 200) : 200;
    if (notTaken[name] === undefined) t.is(first.status, success, first.text);
    else t.true(first.status >= 400 && first.status < 500, first.text);

    const credentials = fc.oneof(
      { weight: 6, arbitrary: fc.constant<Credential>('own') },
      { weight: 2, arbitrary: fc.constantFrom<Credential>('live', 'test', 'none') },
    );
    const holds = fc.asyncProperty(
      requestOf(operation),
      credentials,
      async (filled, credential) => {
        const answer = await call(operation, filled, credential);
        if (answer.status < 500 || isPlayed(operation, { filled, credential }, answer)) return;
        throw new Error(`${answer.status} ${answer.text}`);
      },
    );
    await fc.assert(holds, {
      seed,
      numRuns: operation.fields.length === 0 ? 3 : runsPerOperation,
      // A failure shrinks by calls, each of which takes its time.
      endOnFailure: true,
      includeErrorInReport: true,
    });
  });
}

/** Calls with a test key by each number of the sandbox: what stands for a 5xx answers it, and nothing else does. */
for (const operation of operations.filter(({ name }) => [...sends, ...totp].includes(name))) {
  test.serial(
    `${operation.name}: a 5xx of the sandbox comes for its own number only`,
    async (t) => {
      customer = await stack.customer();
      for (const { phone, code } of magicNumbers.filter(isFailure)) {
        const filled = required(operation);
        filled.body.phone = phone;
        const called: Called = { filled, credential: 'test' };
        const answer = await call(operation, filled, called.credential);
        const expected = played[code]?.includes(operation.name) ?? false;
        t.is(answer.status >= 500, expected, `${phone} ${code}: ${answer.text}`);
        if (expected) t.true(isPlayed(operation, called, answer), answer.text);
      }
    },
  );
}
