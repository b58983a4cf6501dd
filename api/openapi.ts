// The OpenAPI 3.1 document, folded from the route values: paths, schemas, headers and every error a route can give.
import type Joi from 'joi';
import { type ErrorCode, errorCatalogue } from '../lib/kernel/errors.ts';
import { toJsonSchema } from '../lib/kernel/schema.ts';
import { errorsOf } from './errors-of.ts';
import type { Auth, CsvRoute, JsonRoute, RawRoute, Route } from './route.ts';

type Json = Record<string, unknown>;

/** Joi's enum of a nullable field leaves null out, which forbids what its type allows. */
const withNull = (schema: Json): Json =>
  Array.isArray(schema.enum) && Array.isArray(schema.type) && schema.type.includes('null')
    ? { enum: [...schema.enum, null] }
    : {};

/** Joi's JSON Schema leaves out examples, and null from enums: both are set right here. */
const refine = (schema: Json, described: Joi.Description): Json => {
  const examples = described.examples as unknown[] | undefined;
  const keys = described.keys as Record<string, Joi.Description> | undefined;
  const properties = schema.properties as Record<string, Json> | undefined;
  const items = schema.items as Json | undefined;
  const [item] = (described.items ?? []) as Joi.Description[];
  return {
    ...schema,
    ...(examples ? { examples } : {}),
    ...withNull(schema),
    ...(items && item ? { items: refine(items, item) } : {}),
    ...(properties && keys
      ? {
          properties: Object.fromEntries(
            Object.entries(properties).map(([name, property]) => [
              name,
              refine(property, keys[name] ?? ({ type: 'any' } as Joi.Description)),
            ]),
          ),
        }
      : {}),
  };
};

const schemaOf = (schema: Joi.Schema): Json => refine(toJsonSchema(schema), schema.describe());

const bearer = (description: string): Json => ({ type: 'http', scheme: 'bearer', description });

const securitySchemes = {
  apiKey: bearer('An API key: sk_live_… or sk_test_…'),
  session: bearer('The session_token of a login: sess_…'),
  refreshToken: bearer('The refresh_token of a login or of the last refresh: rt_…'),
  mfaToken: bearer('The mfa_token of a login that wants a second factor: mfa_…'),
};

const requestIdHeader = {
  'X-Request-Id': { description: 'Id of this request.', schema: { type: 'string' } },
};
const limitHeaders = {
  'RateLimit-Policy': {
    description: 'The send allowances of the account.',
    schema: { type: 'string' },
  },
  'X-Service-Rate-Tier': {
    description: 'The tier of the account.',
    schema: { type: 'string', enum: ['standard', 'tier-1000', 'tier-5000', 'custom'] },
  },
};
const retryHeader = {
  'Retry-After': { description: 'Seconds to wait.', schema: { type: 'integer', minimum: 1 } },
};

const errorResponse = (status: number, codes: ErrorCode[]): Json => ({
  description: codes.map((code) => `${code}: ${errorCatalogue[code].message}`).join('\n\n'),
  headers: { ...requestIdHeader, ...(status === 429 || status === 503 ? retryHeader : {}) },
  content: {
    'application/json': {
      schema: {
        allOf: [
          { $ref: '#/components/schemas/Error' },
          { properties: { error: { properties: { code: { enum: codes } } } } },
        ],
      },
    },
  },
});

const errorResponses = (route: Route): Json => {
  const byStatus = Map.groupBy(errorsOf(route), (code) => errorCatalogue[code].status);
  const entries = [...byStatus].sort(([left], [right]) => left - right);
  return Object.fromEntries(
    entries.map(([status, codes]) => [String(status), errorResponse(status, codes)]),
  );
};

const parametersOf = (route: Pick<JsonRoute, 'params' | 'query' | 'sends'>): Json[] => {
  const part = (schema: Joi.ObjectSchema | undefined, place: string): Json[] => {
    if (!schema) return [];
    const { properties = {}, required = [] } = schemaOf(schema) as {
      properties?: Record<string, Json>;
      required?: string[];
    };
    return Object.entries(properties).map(([name, member]) => ({
      name,
      in: place,
      required: required.includes(name),
      ...(member.description === undefined ? {} : { description: member.description }),
      schema: member,
    }));
  };
  const once = {
    name: 'Idempotency-Key',
    in: 'header',
    required: false,
    description:
      'Repeating the request with the same key replays the answer and sends nothing further.',
    schema: { type: 'string', minLength: 1, maxLength: 255 },
  };
  return [
    ...part(route.params, 'path'),
    ...part(route.query, 'query'),
    ...(route.sends ? [once] : []),
  ];
};

const schemesOf: Record<Auth, readonly (keyof typeof securitySchemes)[]> = {
  none: [],
  key: ['apiKey'],
  session: ['session'],
  account: ['apiKey', 'session'],
  refresh: ['refreshToken'],
  mfa: ['mfaToken'],
};

const jsonOperation = (route: JsonRoute): Json => ({
  parameters: parametersOf(route),
  ...(route.body
    ? {
        requestBody: {
          required: true,
          content: { 'application/json': { schema: schemaOf(route.body) } },
        },
      }
    : {}),
  security: schemesOf[route.auth].map((name) => ({ [name]: [] })),
  responses: {
    [route.status]: {
      description: 'Success.',
      headers: {
        ...requestIdHeader,
        ...(['key', 'session', 'account'].includes(route.auth) ? limitHeaders : {}),
      },
      content: {
        'application/json': {
          schema: {
            type: 'object',
            properties: { data: schemaOf(route.data) },
            required: ['data'],
            additionalProperties: false,
          },
        },
      },
    },
    ...errorResponses(route),
  },
});

const csvOperation = (route: CsvRoute): Json => ({
  parameters: parametersOf({ ...route, params: undefined }),
  security: schemesOf[route.auth].map((name) => ({ [name]: [] })),
  responses: {
    '200': {
      description: 'The file, streamed.',
      headers: { ...requestIdHeader, ...limitHeaders },
      content: { 'text/csv': { schema: { type: 'string' } } },
    },
    ...errorResponses(route),
  },
});

const rawOperation = (route: RawRoute): Json => ({
  security: [],
  responses: {
    '200': {
      description: 'Taken.',
      headers: requestIdHeader,
      content: { [route.produces]: { schema: {} } },
    },
    '403': { description: 'Not signed by the provider.' },
    ...errorResponses(route),
  },
});

const operationId = ({ method, path }: Route): string =>
  `${method.toLowerCase()}${path
    .replace(/^\/v1/, '')
    .split(/[^A-Za-z0-9]+/)
    .filter(Boolean)
    .map((word) => word.slice(0, 1).toUpperCase() + word.slice(1))
    .join('')}`;

const detailsOf = (route: Route): Json => {
  if (route.kind === 'raw') return rawOperation(route);
  return route.kind === 'csv' ? csvOperation(route) : jsonOperation(route);
};

const operation = (route: Route): Json => ({
  operationId: operationId(route),
  summary: route.summary,
  tags: [route.tag],
  ...detailsOf(route),
});

const string = (description: string, more: Json = {}): Json => ({
  type: 'string',
  description,
  ...more,
});
const integer = (description: string, more: Json = {}): Json => ({
  type: 'integer',
  description,
  ...more,
});

/** The error object of spec section 7, with the members of ours. */
const errorSchema: Json = {
  type: 'object',
  required: ['error'],
  additionalProperties: false,
  properties: {
    error: {
      type: 'object',
      required: ['code', 'message'],
      properties: {
        code: string('Stable and machine-readable.', { enum: Object.keys(errorCatalogue) }),
        message: string('For people; may change.'),
        request_id: string('Id of the request.'),
        reason: string('Why the limit refused.'),
        layer: string('Where the limit is.', { enum: ['edge', 'origin'] }),
        dimension: string('What the limit counts.'),
        retry_after_seconds: integer('Seconds to wait.', { minimum: 1, maximum: 86400 }),
        reset_at: string('When the limit has room again, in UTC.', { format: 'date-time' }),
        window_seconds: integer('Window of the limit.', { minimum: 1, maximum: 86400 }),
        limit: integer('What the limit allows in its window.', { minimum: 1 }),
        telegram_bot_url: string('Only with CHANNEL_NOT_LINKED.', { format: 'uri' }),
        attempts_remaining: integer('Only with INVALID_CODE.', { minimum: 0, maximum: 4 }),
        details: {
          type: 'array',
          description: 'Only with VALIDATION_ERROR: what is wrong, by field.',
          items: {
            type: 'object',
            required: ['field', 'issue'],
            properties: { field: { type: 'string' }, issue: { type: 'string' } },
          },
        },
      },
    },
  },
};

/** The document for a list of routes. */
export const openApiDocument = (routes: readonly Route[]): Json => {
  const byPath = Map.groupBy(routes, (route) => route.path);
  return {
    openapi: '3.1.0',
    info: {
      title: 'Tessera',
      version: '1.0.0',
      description: 'Phone verification: one-time codes over WhatsApp and Telegram.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    tags: [...new Set(routes.map((route) => route.tag))].map((name) => ({ name })),
    paths: Object.fromEntries(
      [...byPath].map(([path, group]) => [
        path,
        Object.fromEntries(group.map((route) => [route.method.toLowerCase(), operation(route)])),
      ]),
    ),
    components: {
      securitySchemes,
      schemas: { Error: errorSchema },
    },
  };
};
