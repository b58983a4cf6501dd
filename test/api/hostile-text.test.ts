// Text that no field expects, in every parameter of every route: refused, or without a match, but never a 5xx.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import type { OpsRoute } from '../../api/ops/route.ts';
import { opsRoutes } from '../../api/ops/routes.ts';
import type { Answer } from '../support/client.ts';
import {
  callOperation,
  clientFor,
  type Field,
  type Filled,
  type Operation,
  operations,
  percent,
  required,
  withField,
} from '../support/operations.ts';
import { type Ops, startOps } from '../support/ops.ts';
import { type Customer, type Stack, startStack } from '../support/stack.ts';
import { sendRaw } from '../support/wire.ts';

let stack: Stack;
let ops: Ops;

test.before(async () => {
  stack = await startStack('hostiletext', {
    settings: { TRUSTED_PROXIES: '1', PLAYGROUND: 'sandbox' },
  });
  ops = await startOps(stack);
});
test.after.always(async () => {
  await ops?.close();
  await stack?.close();
});

/** Signs that are taken for a text as a whole, and put into one that is in order. */
const signs: Record<string, string> = {
  'a letter outside ASCII': 'é',
  'a letter of another script': 'ض',
  'a sign of four bytes': '😀',
  NUL: '\u0000',
  'a control character': '\u0007',
  'a line break': '\r\n',
  'a bidirectional override': '\u202e',
  'a separator of lines': '\u2028',
  'half a surrogate pair': '\ud83d',
  'the other half': '\ude00',
  'a noncharacter': '\uffff',
  'a combining mark': '\u0301',
  SQL: "'||1#",
  'a backslash': '\\',
  'a wildcard': '%_',
};

const longest = { path: 4_000, query: 4_000, header: 4_000, body: 20_000 };

/** Each call that is taken here hashes a password: they are tried with fewer texts. */
const hashing = new Set([
  ...['/v1/clients/register', '/v1/clients/login', '/v1/clients/password'],
  ...['/v1/clients/password/reset', '/v1/clients/security/reauth'],
]);

/** The texts that are tried in a field. */
const textsFor = ({ route }: Operation, { place, example }: Field): [string, string][] => {
  const sound = typeof example === 'string' ? example : '12';
  const middle = Math.ceil(sound.length / 2);
  const built = Object.entries(signs).flatMap(([what, sign]): [string, string][] => [
    [what, sign],
    [`${what} inside`, `${sound.slice(0, middle)}${sign}${sound.slice(middle)}`],
  ]);
  const long = longest[place];
  const chosen = hashing.has(route.path) ? built.filter((_, index) => index % 2 === 1) : built;
  return [
    ...chosen,
    ['nothing', ''],
    ['a blank', ' '],
    ['too much', 'x'.repeat(long)],
    ['too much of four bytes', '😀'.repeat(long / 20)],
    ['a number too large', '9'.repeat(400)],
    ['a name of Object', '__proto__'],
  ];
};

let address = 0;

/** Addresses have limits of their own: each call has its own. */
const from = (): string => {
  address += 1;
  return `2001:db8:${(address >> 16).toString(16)}:${(address & 0xffff).toString(16)}::1`;
};

/** Customers are changed when their limits are used up: a call that was refused for its number shows nothing. */
const createCaller = (operation: Operation) => {
  let customer: Customer | undefined;
  return async (filled: Filled): Promise<Answer> => {
    for (let times = 0; ; times += 1) {
      customer ??= await stack.customer();
      const client = clientFor(stack, operation, customer);
      const placed = { ...filled, header: { ...filled.header, 'X-Forwarded-For': from() } };
      const answer = await callOperation(client, operation, placed);
      if (answer.status !== 429 || times > 0) return answer;
      customer = undefined;
    }
  };
};

const holds = (t: ExecutionContext, what: string, answer: { status: number; text: string }) => {
  t.true(answer.status < 500, `${what}: ${answer.status} ${answer.text.slice(0, 200)}`);
};

const inHeaders = (value: string): boolean => /^[\u0020-\u007e\u0080-\u00ff]*$/.test(value);

test('every operation has its row here', (t) => {
  t.true(operations.length > 60);
  t.true(operations.flatMap(({ fields }) => fields).length > 90);
});

for (const operation of operations.filter(({ fields }) => fields.length > 0)) {
  test.serial(`${operation.name}: no text in any field is answered with a 5xx`, async (t) => {
    const call = createCaller(operation);
    const base = required(operation);
    for (const field of operation.fields) {
      for (const [what, value] of textsFor(operation, field)) {
        if (field.place === 'header' && !inHeaders(value)) continue;
        const named = `${operation.name} ${field.place} ${field.name}: ${what}`;
        const answer = await call(withField(base, field, value));
        holds(t, named, answer);
        if (answer.status >= 400) t.regex(answer.text, /^\{"error":/, named);
      }
    }
  });
}

const escaped = ['%', '%zz', '%E0%A4%A', '%ff', '%C3', '%ED%A0%BD', '%00', '%0d%0a', '%u0041'];

test.serial('broken percent-escapes in paths and queries are a 4xx or find nothing', async (t) => {
  const customer = await stack.customer();
  for (const { name, route, fields } of operations) {
    for (const { place, name: member } of fields) {
      for (const bytes of escaped) {
        const inPath = route.path.replace(/\{\w+\}/, bytes);
        const path = place === 'query' ? `${route.path}?${member}=${bytes}` : inPath;
        if (place !== 'query' && place !== 'path') continue;
        const headers: [string, string][] = [
          ['Authorization', `Bearer ${customer.session.key}`],
          ['X-Forwarded-For', from()],
        ];
        const { status, body } = await sendRaw(stack.url, { method: route.method, path, headers });
        holds(t, `${name} ${path}`, { status, text: body });
      }
    }
  }
});

const kept = new Set(['User-Agent', 'X-Forwarded-For']);
const headerBytes = [
  '\u00ff',
  'caf\u00e9',
  '\u0001',
  '\t',
  "'||1#",
  '\\',
  '"',
  'x'.repeat(8_000),
  `fe80::1%${'x'.repeat(100)}`,
];

test.serial('odd bytes in headers are a 4xx or passed over', async (t) => {
  const { email, password, live } = await stack.customer();
  const names = [
    ...['Authorization', 'Idempotency-Key', 'User-Agent', 'X-Request-Id', 'traceparent'],
    ...['Accept-Encoding', 'If-None-Match', 'Referer', 'Content-Type', 'X-Forwarded-For'],
  ];
  for (const name of names) {
    for (const value of headerBytes) {
      // A login keeps where it came from.
      const [path, body] = kept.has(name)
        ? ['/v1/clients/login', { email, password }]
        : ['/v1/otp/verify', { phone: '+14155550123', code: '123456' }];
      const sound: Record<string, string> = {
        'X-Forwarded-For': from(),
        'Content-Type': 'application/json',
        Authorization: `Bearer ${live.key}`,
      };
      const headers = Object.entries({ ...sound, [name]: value });
      const sent = { method: 'POST', path, headers, body: JSON.stringify(body) };
      const { status, body: text } = await sendRaw(stack.url, sent);
      holds(t, `${path} ${name}: ${JSON.stringify(value).slice(0, 20)}`, { status, text });
    }
  }
});

type Described = { type: string; allow?: unknown[]; keys?: Record<string, Described> };

/** A value that the schema of an ops field takes, as far as it says so itself. */
const soundOf = ({ type, allow = [] }: Described): unknown => {
  const [first] = allow;
  if (first !== undefined && typeof first !== 'object') return first;
  return { number: 1, boolean: true }[type] ?? '01a1fbf0-dc97-7d74-9dbf-33d7e8e4d656';
};

const keysOf = (schema: { describe(): object } | undefined): Record<string, Described> =>
  (schema?.describe() as Described | undefined)?.keys ?? {};

const soundValues = (keys: Record<string, Described>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(keys).map(([name, schema]) => [name, soundOf(schema)]));

type OpsParts = Record<'params' | 'query' | 'body', Record<string, unknown>>;

const opsAddress = (path: string, { params, query }: OpsParts): string => {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => percent(String(params[name])));
  const pairs = Object.entries(query).map(([name, value]) => `${name}=${percent(String(value))}`);
  return pairs.length === 0 ? filled : `${filled}?${pairs.join('&')}`;
};

/** What the pages of the console read from their address: they have no schemas. */
const pageQuery = (): string[] => {
  const folder = join(import.meta.dirname, '../../api/ops');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const texts = files.filter((file) => file.endsWith('.ts')).map((file) => join(folder, file));
  const names = texts.flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/query\.get\('(\w+)'\)/g)].map(([, name]) => name),
  );
  return [...new Set(names.filter((name) => name !== undefined))];
};

const opsTexts = ['é', '+é', '😀\u0000', '\ud83d', "'||1#\\%_"];

type OpsSchemas = Record<keyof OpsParts, Record<string, Described>>;

const opsSchemas = (route: OpsRoute): OpsSchemas => {
  if (route.kind === 'json') {
    return { params: keysOf(route.params), query: keysOf(route.query), body: keysOf(route.body) };
  }
  const names = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
  return {
    params: Object.fromEntries(names.map((name) => [name, { type: 'string' }])),
    query: {},
    body: {},
  };
};

/** The requests of a route with each text in each field; a page has it in everything that any page reads. */
const opsRequests = (route: OpsRoute): OpsParts[] => {
  const schemas = opsSchemas(route);
  const sound: OpsParts = {
    params: soundValues(schemas.params),
    query: soundValues(schemas.query),
    body: soundValues(schemas.body),
  };
  const fields = (['params', 'query', 'body'] as const).flatMap((part) =>
    Object.keys(schemas[part]).map((name) => [part, name] as const),
  );
  return opsTexts.flatMap((text) => {
    const page = { ...sound, query: Object.fromEntries(pageQuery().map((name) => [name, text])) };
    const single = fields.map(([part, name]) => ({
      ...sound,
      [part]: { ...sound[part], [name]: text },
    }));
    return route.kind === 'json' ? single : [page, ...single];
  });
};

for (const route of opsRoutes.filter(({ kind }) => kind !== 'form')) {
  test.serial(`ops ${route.method} ${route.path}: no text is answered with a 5xx`, async (t) => {
    for (const parts of opsRequests(route)) {
      const path = opsAddress(route.path, parts);
      const answer =
        route.method === 'GET' ? await ops.get(path) : await ops.post(path, parts.body);
      holds(t, `${route.method} ${path} ${JSON.stringify(parts.body)}`, answer);
    }
    t.pass();
  });
}
