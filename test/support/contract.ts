// Holds every answer the tests see against the OpenAPI document: status, code and shape.
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormatsModule from 'ajv-formats';
import { operationOf } from '../../api/openapi.ts';
import { errorSchema } from '../../api/openapi-parts.ts';
import { eventOperations } from '../../api/openapi-webhooks.ts';
import type { Route } from '../../api/route.ts';
import { routes } from '../../api/routes.ts';

type Json = Record<string, unknown>;
type Response = { content?: Record<string, { schema: Json }> };
type Operation = { responses: Record<string, Response> };
type Webhook = { post: { requestBody: { content: { 'application/json': { schema: Json } } } } };

const ajv = new Ajv2020({ strict: false });
const addFormats = addFormatsModule as unknown as (instance: Ajv2020) => void;
addFormats(ajv);
// All that the schemas of the document refer to.
const components = { schemas: { Error: errorSchema } };

// The parts of the document are made when first asked for: a test file calls few of its operations.
const remember = <K, V>(make: (key: K) => V): ((key: K) => V) => {
  const known = new Map<K, V>();
  return (key) => {
    const found = known.get(key) ?? make(key);
    known.set(key, found);
    return found;
  };
};

const described = remember((route: Route) => operationOf(route) as Operation);
const validatorOf = remember(
  (schema: Json): ReturnType<typeof ajv.compile> => ajv.compile({ ...schema, components }),
);
const eventOf = remember(
  (type: string) => (eventOperations() as Record<string, Webhook | undefined>)[type],
);

// A path that is written out is meant before one with a parameter in its place.
const patterns = [...Map.groupBy(routes, ({ path }) => path)]
  .sort(([left], [right]) => Number(left.includes('{')) - Number(right.includes('{')))
  .map(([path, group]) => ({
    group,
    pattern: new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]+')}$`),
  }));

const operationAt = (method: string, path: string): Operation | undefined => {
  const [bare = ''] = path.split('?');
  const known = patterns.find(({ pattern }) => pattern.test(bare));
  const route = known?.group.find((one) => one.method === method.toUpperCase());
  return route && described(route);
};

/** Throws when what was posted to a receiver is not what the document says of its type. */
export const checkEvent = (body: string): void => {
  const event = JSON.parse(body) as { type: string };
  const webhook = eventOf(event.type);
  if (!webhook) throw new Error(`${event.type} is no type of the document`);
  const validate = validatorOf(webhook.post.requestBody.content['application/json'].schema);
  if (!validate(event)) {
    throw new Error(`${event.type}: ${ajv.errorsText(validate.errors)} in ${body}`);
  }
};

/** Throws when an answer is not what the document says of its operation. */
export const checkAnswer = (
  method: string,
  path: string,
  answer: { status: number },
  text: string,
): void => {
  const operation = operationAt(method, path);
  if (!operation) return;
  const response = operation.responses[String(answer.status)];
  if (!response)
    throw new Error(
      `${method} ${path} answered ${answer.status}, which is not documented: ${text}`,
    );
  const schema = response.content?.['application/json']?.schema;
  if (!schema || Object.keys(schema).length === 0) return;
  const validate = validatorOf(schema);
  if (validate(JSON.parse(text))) return;
  throw new Error(`${method} ${path}: ${ajv.errorsText(validate.errors)} in ${text}`);
};
