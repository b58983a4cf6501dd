// The OpenAPI document: served, sound, complete against the routes, and the error catalogue against the contract.

import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormatsModule from 'ajv-formats';
import test from 'ava';
import { errorsOf } from '../../api/errors-of.ts';
import { openApiDocument } from '../../api/openapi.ts';
import { routes } from '../../api/routes.ts';
import { readCursor } from '../../lib/kernel/cursor.ts';
import { errorCatalogue } from '../../lib/kernel/errors.ts';
import { type Stack, startStack } from '../support/stack.ts';

type Json = Record<string, unknown>;
type Parameter = {
  name: string;
  in: string;
  required: boolean;
  schema: Json;
  description?: string;
};
type Content = Record<string, { schema: Json }>;
type Response = { description: string; headers?: Json; content?: Content };
type Operation = {
  operationId: string;
  summary: string;
  tags: string[];
  parameters?: Parameter[];
  requestBody?: { required: boolean; content: Content };
  security: Json[];
  responses: Record<string, Response>;
};
type Document = Json & {
  openapi: string;
  info: { title: string; version: string };
  tags: { name: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: { securitySchemes: Json; schemas: Record<string, Json> };
};

let stack: Stack;
let document: Document;

test.before(async () => {
  stack = await startStack('openapi', { workers: [] });
  const answer = await fetch(`${stack.url}/openapi.json`);
  document = (await answer.json()) as Document;
});
test.after.always(() => stack?.close());

const operations = (): [string, string, Operation][] =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): [string, string, Operation] => [
      ...([method, path, operation] as const),
    ]),
  );

test('it is served as JSON to anybody, and is what the routes say', async (t) => {
  const answer = await fetch(`${stack.url}/openapi.json`);
  t.is(answer.status, 200);
  t.regex(answer.headers.get('content-type') ?? '', /^application\/json/);
  t.deepEqual(await answer.json(), JSON.parse(JSON.stringify(openApiDocument(routes))));
  t.is(document.openapi, '3.1.0');
  t.is(document.info.version, '1.0.0', 'the contract’s version');
});

test('operations are named once, described, tagged, and their parameters are those of the path', (t) => {
  const ids = operations().map(([, , { operationId }]) => operationId);
  t.is(new Set(ids).size, ids.length);
  const tags = new Set(document.tags.map(({ name }) => name));
  for (const [method, path, operation] of operations()) {
    const what = `${method} ${path}`;
    t.regex(operation.operationId, /^[A-Za-z][A-Za-z0-9]*$/, what);
    t.true(operation.summary.length > 5, what);
    t.true(
      operation.tags.every((tag) => tags.has(tag)),
      what,
    );
    const templated = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    const inPath = (operation.parameters ?? []).filter(({ in: place }) => place === 'path');
    t.deepEqual(inPath.map(({ name }) => name).sort(), templated.sort(), what);
    t.true(
      inPath.every(({ required }) => required),
      what,
    );
    t.truthy(operation.responses['200'] ?? operation.responses['201'], what);
    for (const [status, response] of Object.entries(operation.responses)) {
      t.regex(status, /^[2-5]\d\d$/, what);
      t.true(response.description.length > 0, `${what} ${status}`);
    }
  }
});

test('every reference resolves and every schema is sound JSON Schema 2020-12', (t) => {
  const ajv = new Ajv2020({ strict: true, strictTypes: false, strictRequired: false });
  (addFormatsModule as unknown as (instance: Ajv2020) => void)(ajv);
  // OpenAPI's own words beside those of JSON Schema.
  ajv.addVocabulary(['example', 'components']);
  const schemas = operations().flatMap(([method, path, operation]) => [
    ...(operation.parameters ?? []).map(({ name, schema }) => [`${path} ${name}`, schema] as const),
    ...Object.entries(operation.requestBody?.content ?? {}).map(
      ([, { schema }]) => [`${method} ${path} body`, schema] as const,
    ),
    ...Object.entries(operation.responses).flatMap(([status, { content = {} }]) =>
      Object.values(content).map(({ schema }) => [`${method} ${path} ${status}`, schema] as const),
    ),
  ]);
  t.true(schemas.length > 30);
  for (const [what, schema] of schemas) {
    t.notThrows(() => ajv.compile({ ...schema, components: document.components }), what);
  }
  for (const [, reference] of JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)) {
    const target = (reference ?? '')
      .split('/')
      .reduce<unknown>((node, name) => (node as Json | undefined)?.[name], document);
    t.truthy(target, reference);
  }
});

test('examples fit their schemas', (t) => {
  const ajv = new Ajv2020({ strict: false, multipleOfPrecision: 6 });
  (addFormatsModule as unknown as (instance: Ajv2020) => void)(ajv);
  let seen = 0;
  const visit = (node: unknown, what: string): void => {
    if (typeof node !== 'object' || node === null) return;
    const { examples, ...schema } = node as Json;
    if (Array.isArray(examples) && 'type' in schema) {
      for (const example of examples) {
        seen++;
        t.true(ajv.validate(schema, example), `${what}: ${JSON.stringify(example)}`);
      }
    }
    for (const [name, child] of Object.entries(node)) visit(child, `${what}/${name}`);
  };
  visit(document.paths, '');
  t.true(seen > 5);
});

const security = {
  none: [],
  key: [{ apiKey: [] }],
  session: [{ session: [] }],
  account: [{ apiKey: [] }, { session: [] }],
  refresh: [{ refreshToken: [] }],
  mfa: [{ mfaToken: [] }],
};

test('every route is in it, with every error it can give and no other', (t) => {
  t.is(operations().length, routes.length);
  for (const route of routes) {
    const operation = document.paths[route.path]?.[route.method.toLowerCase()];
    const what = `${route.method} ${route.path}`;
    if (!operation) {
      t.fail(what);
      continue;
    }
    const listed = Object.values(operation.responses).flatMap(({ content }) => {
      const parts = (content?.['application/json']?.schema.allOf ?? []) as Json[];
      const text = JSON.stringify(parts[1] ?? {});
      return (/"enum":(\[[^\]]*\])/.exec(text)?.[1] ?? '').match(/[A-Z_]{4,}/g) ?? [];
    });
    t.deepEqual(listed.sort(), [...errorsOf(route)].sort(), what);
    for (const code of errorsOf(route)) {
      const { description } = operation.responses[errorCatalogue[code].status] ?? {};
      t.true(description?.includes(code), `${what} ${code}`);
    }
    t.deepEqual(operation.security, route.kind === 'raw' ? [] : security[route.auth], what);
    if (route.kind !== 'json') continue;
    t.deepEqual(operation.security, security[route.auth], what);
    t.is(operation.requestBody !== undefined, route.body !== undefined, what);
    const once = (operation.parameters ?? []).some(({ name }) => name === 'Idempotency-Key');
    t.is(once, route.sends, what);
    const closed = operation.requestBody?.content['application/json']?.schema.additionalProperties;
    if (route.body) t.is(closed, false, `${what}: no additional properties`);
  }
});

test('the calls of the contract for health and codes are there, with its fields', (t) => {
  const required = (method: string, path: string): unknown[] => {
    const body = document.paths[path]?.[method]?.requestBody?.content['application/json'];
    return (body?.schema.required ?? []) as unknown[];
  };
  const answer = (method: string, path: string): string[] => {
    const response = document.paths[path]?.[method]?.responses['200'];
    const properties = response?.content?.['application/json']?.schema.properties as
      | { data: { properties: Json } }
      | undefined;
    return Object.keys(properties?.data.properties ?? {});
  };
  const sent = ['message_id', 'status', 'expires_in', 'cooldown_seconds'];
  for (const [method, path, fields, data] of [
    ['get', '/health', [], ['status']],
    ['get', '/health/channels', [], ['whatsapp', 'telegram']],
    ['post', '/v1/otp/send', ['phone'], sent],
    ['post', '/v1/otp/deliver', ['phone', 'code'], ['message_id', 'status', 'cooldown_seconds']],
    ['post', '/v1/otp/verify', ['phone', 'code'], ['verified']],
    ['post', '/v1/otp/telegram-link', ['phone'], ['telegram_bot_url', 'expires_in']],
    ['get', '/v1/otp/status/{message_id}', [], ['message_id', 'status', 'channel', 'mode']],
  ] as const) {
    t.truthy(document.paths[path]?.[method], `${method} ${path}`);
    t.deepEqual(required(method, path).sort(), [...fields].sort(), path);
    const found = answer(method, path);
    t.deepEqual(
      data.filter((name) => !found.includes(name)),
      [],
      path,
    );
  }
});

const bodyAt = (method: string, path: string) => {
  const { requestBody } = document.paths[path]?.[method] ?? {};
  const { schema = {} } = requestBody?.content['application/json'] ?? {};
  return { required: requestBody?.required, schema };
};

test('what a body must hold beyond single fields is in its schema', (t) => {
  t.is(bodyAt('post', '/v1/clients/keys/rotate').required, false, 'a rotation needs no body');
  t.is(bodyAt('post', '/v1/otp/send').required, true);
  const each = (...names: string[]) => names.map((name) => ({ required: [name] }));
  const profile = bodyAt('patch', '/v1/clients/profile');
  t.true(profile.required);
  t.deepEqual(profile.schema.anyOf, each('name', 'phone', 'company', 'locale'));
  const settings = bodyAt('patch', '/v1/clients/settings').schema;
  t.deepEqual(settings.anyOf, each(...Object.keys(settings.properties as Json)));
  for (const name of ['reauth', 'mfa/disable', 'mfa/recovery']) {
    const { schema } = bodyAt('post', `/v1/clients/security/${name}`);
    t.deepEqual(schema.oneOf, each('password', 'code'), name);
  }
  const { amount } = bodyAt('post', '/v1/clients/deposits').schema.properties as Record<
    string,
    Json
  >;
  t.is(amount?.multipleOf, 0.01);
  t.is((settings.properties as Record<string, Json>).spend_cap_hourly?.multipleOf, 0.000001);
});

test('times and cursors of queries say their form, and the example of a cursor is one', (t) => {
  const parameters = document.paths['/v1/clients/otps']?.get?.parameters ?? [];
  const named = (name: string) => parameters.find((parameter) => parameter.name === name);
  const forms = [{ format: 'date-time' }, { format: 'date' }];
  t.deepEqual(named('from')?.schema.anyOf, forms);
  t.deepEqual(named('to')?.schema.anyOf, forms);
  const { example } = named('before') as unknown as { example: string };
  t.truthy(readCursor(example), example);
});

test('every list has next_before', (t) => {
  const lists = operations().flatMap(([method, path, { responses }]) => {
    const { schema } = responses['200']?.content?.['application/json'] ?? {};
    const { data } = (schema?.properties ?? {}) as { data?: { properties?: Json } };
    return data?.properties?.items === undefined ? [] : [[method, path, data.properties] as const];
  });
  t.true(lists.length > 8);
  for (const [method, path, properties] of lists)
    t.true('next_before' in properties, `${method} ${path}`);
});

/** Spec section 7, in its order. */
const contract: Record<string, number> = {
  ...{ VALIDATION_ERROR: 400, INVALID_API_KEY: 401, ACCOUNT_SUSPENDED: 401, NOT_FOUND: 404 },
  ...{ RATE_LIMIT_EXCEEDED: 429, INTERNAL_ERROR: 500, INVALID_PHONE: 400, OTP_NOT_FOUND: 400 },
  ...{ IDEMPOTENCY_KEY_IN_PROGRESS: 409, TEMPLATE_NOT_READY: 409, CHANNEL_NOT_LINKED: 409 },
  ...{ TOO_MANY_ATTEMPTS: 429, DELIVERY_FAILED: 500, TELEGRAM_UNAVAILABLE: 503 },
  ...{ CENTRAL_WHATSAPP_UNSUPPORTED_REGION: 400, INTL_PRICING_NOT_CONFIGURED: 400 },
  ...{ INTL_PRICE_BELOW_COST: 400, CENTRAL_WHATSAPP_CONNECT_REQUIRED: 403 },
  ...{ CENTRAL_WHATSAPP_LIMIT: 429, CENTRAL_WHATSAPP_PAUSED: 503, TOTP_NOT_ENROLLED: 400 },
  ...{ ALREADY_ENROLLED: 409, TOTP_NOT_CONFIGURED: 503, INSUFFICIENT_CREDITS: 402 },
  ...{ DEPOSIT_REQUIRED: 402, FREE_TRIAL_EXHAUSTED: 402, SPEND_CAP_EXCEEDED: 429 },
  ...{ BILLING_ERROR: 500, FREE_TRIAL_PAUSED: 503 },
};

/** The codes of ours (design section 4). */
const ours: Record<string, number> = {
  ...{ INVALID_CODE: 400, INVALID_SESSION: 401, INVALID_CREDENTIALS: 401 },
  ...{
    TURNSTILE_REQUIRED: 403,
    REAUTH_REQUIRED: 403,
    KEY_MANAGEMENT_DISABLED: 403,
    EMAIL_TAKEN: 409,
    CAPACITY_REQUEST_PENDING: 409,
    IDEMPOTENCY_KEY_REUSED: 422,
  },
  ...{ METHOD_NOT_ALLOWED: 405, PAYLOAD_TOO_LARGE: 413, UNSUPPORTED_MEDIA_TYPE: 415 },
  SERVICE_UNAVAILABLE: 503,
};

const errorMembers = (): Record<string, Json> => {
  const { error } = (document.components.schemas.Error?.properties ?? {}) as { error?: Json };
  return (error?.properties ?? {}) as Record<string, Json>;
};

test('the catalogue has every code of the contract with its status, ours, and none extra', (t) => {
  const statuses = Object.fromEntries(
    Object.entries(errorCatalogue).map(([code, { status }]) => [code, status]),
  );
  t.deepEqual(statuses, { ...contract, ...ours });
  t.deepEqual(Object.keys(statuses).slice(0, 29), Object.keys(contract), 'in its order');
  t.deepEqual(errorMembers().code?.enum, Object.keys(errorCatalogue));
});

test('errors of the optional members are bounded as the contract says', (t) => {
  const properties = errorMembers();
  for (const name of ['retry_after_seconds', 'window_seconds']) {
    t.like(properties[name], { type: 'integer', minimum: 1, maximum: 86_400 });
  }
  t.like(properties.limit, { type: 'integer', minimum: 1 });
  t.like(properties.reset_at, { type: 'string', format: 'date-time' });
  t.deepEqual(properties.layer?.enum, ['edge', 'origin']);
});

test('a code that says to wait is 409, 429 or 503, and its sentence ends', (t) => {
  for (const [code, { retry, status, message }] of Object.entries(errorCatalogue)) {
    if (retry === 'after') t.true([409, 429, 503].includes(status), code);
    t.regex(message, /^[A-Z].*\.$/, code);
  }
});
