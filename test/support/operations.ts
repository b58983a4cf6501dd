// The operations of the public API as a test calls them: the parts of a request, filled from the OpenAPI document.
import { operationOf } from '../../api/openapi.ts';
import type { CsvRoute, JsonRoute, Route } from '../../api/route.ts';
import { routes } from '../../api/routes.ts';
import { type Client, createClient } from './client.ts';
import type { Customer, Stack } from './stack.ts';

type Json = Record<string, unknown>;

/** Where a field of a request stands. */
export type Place = 'path' | 'query' | 'header' | 'body';

export type Field = {
  place: Place;
  name: string;
  required: boolean;
  /** Its JSON Schema in the document. */
  schema: Json;
  example: unknown;
};

export type Operation = {
  /** Method and path, as texts name it. */
  name: string;
  route: JsonRoute | CsvRoute;
  fields: readonly Field[];
};

type Described = {
  parameters?: { name: string; in: Place; required: boolean; schema: Json; example: unknown }[];
  requestBody?: { content: { 'application/json': { schema: Json; example: Json } } };
};

const fieldsOf = (route: Route): Field[] => {
  const { parameters = [], requestBody } = operationOf(route) as Described;
  const { schema = {}, example = {} } = requestBody?.content['application/json'] ?? {};
  const required = new Set((schema.required ?? []) as string[]);
  return [
    ...parameters.map(({ in: place, ...rest }): Field => ({ place, ...rest })),
    ...Object.entries((schema.properties ?? {}) as Record<string, Json>).map(
      ([name, member]): Field => ({
        place: 'body',
        name,
        required: required.has(name),
        schema: member,
        example: example[name],
      }),
    ),
  ];
};

/** Every operation that takes JSON or answers CSV; those of providers have bytes of their own. */
export const operations: readonly Operation[] = routes
  .filter((route) => route.kind !== 'raw')
  .map((route) => ({
    name: `${route.method} ${route.path}`,
    route,
    fields: fieldsOf(route),
  }));

/** Values of a request by place and name; a field that is not there is left out. */
export type Filled = Record<Place, Record<string, unknown>>;

/** The example of every field that must be there. */
export const required = ({ fields }: Operation): Filled => {
  const filled: Filled = { path: {}, query: {}, header: {}, body: {} };
  for (const field of fields) {
    if (field.required) filled[field.place][field.name] = field.example;
  }
  return filled;
};

/** A request with one more value. */
export const withField = (filled: Filled, { place, name }: Field, value: unknown): Filled => ({
  ...filled,
  [place]: { ...filled[place], [name]: value },
});

/** Percent-encodes; half a surrogate pair becomes the three bytes that some encoders write for it. */
export const percent = (text: string): string =>
  [...text]
    .map((sign) => {
      const unit = sign.charCodeAt(0);
      if (sign.isWellFormed()) return encodeURIComponent(sign);
      const bytes = [0xe0 | (unit >> 12), 0x80 | ((unit >> 6) & 0x3f), 0x80 | (unit & 0x3f)];
      return bytes.map((byte) => `%${byte.toString(16).toUpperCase()}`).join('');
    })
    .join('');

/** The path and query of a request. */
export const addressOf = ({ route }: Operation, { path, query }: Filled): string => {
  const filled = route.path.replace(/\{(\w+)\}/g, (_, name: string) => percent(String(path[name])));
  const pairs = Object.entries(query).map(([name, value]) => `${name}=${percent(String(value))}`);
  return pairs.length === 0 ? filled : `${filled}?${pairs.join('&')}`;
};

/** Calls the operation; every answer is checked against the document by the client. */
export const callOperation = (client: Client, operation: Operation, filled: Filled) => {
  const { route, fields } = operation;
  const headers = Object.fromEntries(
    Object.entries(filled.header).map(([name, value]) => [name, String(value)]),
  );
  const takesBody = fields.some(({ place }) => place === 'body');
  return client.call(route.method, addressOf(operation, filled), {
    headers,
    ...(takesBody ? { body: filled.body } : {}),
  });
};

/** A client with a credential of the kind that the operation takes; tokens of a moment are made up. */
export const clientFor = (stack: Stack, { route }: Operation, customer: Customer): Client => {
  if (route.auth === 'none') return stack.anybody;
  if (route.auth === 'key') return customer.live;
  if (route.auth === 'refresh') return createClient(stack.url, 'rt_nonsense');
  if (route.auth === 'mfa') return createClient(stack.url, 'mfa_nonsense');
  return customer.session;
};
