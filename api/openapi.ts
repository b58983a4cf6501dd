// The OpenAPI 3.1 document, folded from the route values: paths, schemas, headers and every error a route can give.
import type Joi from 'joi';
import { type ErrorCode, errorCatalogue } from '../lib/kernel/errors.ts';
import { errorsOf } from './errors-of.ts';
import { errorExamples, exampleOf } from './openapi-examples.ts';
import {
  errorSchema,
  limitHeaders,
  requestIdHeader,
  retryHeader,
  securitySchemes,
  tagTexts,
} from './openapi-parts.ts';
import { schemaOf } from './openapi-schema.ts';
import {
  leftOut,
  providerBodies,
  providerHeaders,
  shownOnly,
  textExamples,
} from './openapi-values.ts';
import { eventOperations } from './openapi-webhooks.ts';
import type { Auth, CsvRoute, JsonRoute, RawRoute, Route } from './route.ts';

type Json = Record<string, unknown>;

const errorResponse = (status: number, codes: ErrorCode[]): Json => ({
  description: codes
    .map((code) => `[${code}](/docs/errors/${code}): ${errorCatalogue[code].message}`)
    .join('\n\n'),
  headers: { ...requestIdHeader, ...(status === 429 || status === 503 ? retryHeader : {}) },
  content: {
    'application/json': {
      schema: {
        allOf: [
          { $ref: '#/components/schemas/Error' },
          {
            properties: {
              error: { properties: { code: { enum: codes } }, unevaluatedProperties: true },
            },
          },
        ],
      },
      examples: Object.fromEntries(
        codes.map((code) => [code, { $ref: `#/components/examples/${code}` }]),
      ),
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
      example: exampleOf(member, name),
    }));
  };
  const once = {
    name: 'Idempotency-Key',
    in: 'header',
    required: false,
    description:
      'Repeating the request with the same key replays the answer and sends nothing further.',
    schema: { type: 'string', minLength: 1, maxLength: 255 },
    example: 'signup-8c1f4a52',
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

/** How texts about operations name one. */
export const operationKey = ({ method, path }: Pick<Route, 'method' | 'path'>): string =>
  `${method} ${path}`;

const bodyOf = (route: JsonRoute): Json => {
  if (!route.body) return {};
  const schema = schemaOf(route.body);
  const only = shownOnly[operationKey(route)];
  const example = exampleOf(schema, '', (name) => only?.includes(name) ?? true);
  const content = { 'application/json': { schema, example } };
  // A body whose fields may all be left out may be left out itself.
  const mayBeEmpty = route.body.validate({}).error === undefined;
  return { requestBody: { required: !mayBeEmpty, content } };
};

const answerOf = (route: JsonRoute): Json => {
  const data = schemaOf(route.data);
  const without = leftOut[operationKey(route)] ?? [];
  return {
    schema: {
      type: 'object',
      properties: { data },
      required: ['data'],
      additionalProperties: false,
    },
    example: { data: exampleOf(data, '', (name) => !without.includes(name)) },
  };
};

const jsonOperation = (route: JsonRoute): Json => ({
  parameters: parametersOf(route),
  ...bodyOf(route),
  security: schemesOf[route.auth].map((name) => ({ [name]: [] })),
  responses: {
    [route.status]: {
      description: 'Success.',
      headers: {
        ...requestIdHeader,
        ...(['key', 'session', 'account'].includes(route.auth) ? limitHeaders : {}),
      },
      content: { 'application/json': answerOf(route) },
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
      content: {
        'text/csv': { schema: { type: 'string' }, example: textExamples[operationKey(route)] },
      },
    },
    ...errorResponses(route),
  },
});

/** What is not made for customers: documents, and the calls of providers, which bring signatures of their own. */
const rawOperation = (route: RawRoute): Json => {
  const key = operationKey(route);
  const posted = providerBodies[key];
  const body = { schema: { type: 'object' }, example: posted };
  const [name, description, shown] = providerHeaders[key] ?? [];
  const proof = { name, in: 'header', description, required: true, schema: { type: 'string' } };
  const inbound = route.path.startsWith('/v1/inbound/');
  const example = textExamples[key] ?? '';
  return {
    ...(name === undefined ? {} : { parameters: [{ ...proof, example: shown }] }),
    ...(posted === undefined
      ? {}
      : { requestBody: { required: true, content: { 'application/json': body } } }),
    security: [],
    responses: {
      '200': {
        description: inbound ? 'Taken.' : 'The document.',
        headers: requestIdHeader,
        content: {
          [route.produces]: {
            schema: {},
            example: route.produces.includes('json') ? JSON.parse(example) : example,
          },
        },
      },
      ...(inbound
        ? { '403': { description: 'Not signed by the provider.' } }
        : { '304': { description: 'It is still what the ETag in If-None-Match names.' } }),
      ...errorResponses(route),
    },
  };
};

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

const credentialTexts: Record<Auth, string> = {
  none: 'Takes no credential.',
  key: 'Takes an API key.',
  session: 'Takes the session token of a login.',
  account: 'Takes an API key or the session token of a login.',
  refresh: 'Takes the refresh token.',
  mfa: 'Takes the mfa_token of a login that asked for a second factor.',
};

/** What is said of an operation beyond its summary: its own words, its credential, and how to repeat it. */
const descriptionOf = (route: Route): string =>
  [
    ...(route.about === undefined ? [] : [route.about]),
    credentialTexts[route.auth],
    ...(route.kind === 'json' && route.sends
      ? ['Send an Idempotency-Key with it, and a repeat after a lost answer sends nothing twice.']
      : []),
  ].join(' ');

/** The operation of one route, as it stands in the document. */
export const operationOf = (route: Route): Json => ({
  operationId: operationId(route),
  summary: route.summary,
  description: descriptionOf(route),
  tags: [route.tag],
  ...detailsOf(route),
});

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
      contact: { name: 'Whoever runs this service' },
    },
    servers: [{ url: '/' }],
    tags: [...new Set(routes.map((route) => route.tag))].map((name) => ({
      name,
      description: tagTexts[name],
    })),
    paths: Object.fromEntries(
      [...byPath].map(([path, group]) => [
        path,
        Object.fromEntries(group.map((route) => [route.method.toLowerCase(), operationOf(route)])),
      ]),
    ),
    webhooks: eventOperations(),
    components: {
      securitySchemes,
      schemas: { Error: errorSchema },
      examples: errorExamples(new Set(routes.flatMap(errorsOf))),
    },
  };
};
