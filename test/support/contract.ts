// Holds every answer the tests see against the OpenAPI document: status, code and shape.
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormatsModule from 'ajv-formats';
import { openApiDocument } from '../../api/openapi.ts';
import { routes } from '../../api/routes.ts';

type Json = Record<string, unknown>;
type Response = { content?: Record<string, { schema: Json }> };
type Operation = { responses: Record<string, Response> };
type Webhook = { post: { requestBody: { content: { 'application/json': { schema: Json } } } } };
type Document = {
  webhooks: Record<string, Webhook>;
  paths: Record<string, Record<string, Operation>>;
  components: Json;
};

const document = openApiDocument(routes) as unknown as Document;
const ajv = new Ajv2020({ strict: false });
const addFormats = addFormatsModule as unknown as (instance: Ajv2020) => void;
addFormats(ajv);

const patterns = Object.keys(document.paths).map((path) => ({
  path,
  pattern: new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]+')}$`),
}));

const operationOf = (method: string, path: string): Operation | undefined => {
  const [bare = ''] = path.split('?');
  const known = patterns.find(({ pattern }) => pattern.test(bare));
  return known && document.paths[known.path]?.[method.toLowerCase()];
};

const compiled = new Map<Json, ReturnType<typeof ajv.compile>>();

const validatorOf = (schema: Json) => {
  const known = compiled.get(schema);
  if (known) return known;
  const validator = ajv.compile({ ...schema, components: document.components });
  compiled.set(schema, validator);
  return validator;
};

/** Throws when what was posted to a receiver is not what the document says of its type. */
export const checkEvent = (body: string): void => {
  const event = JSON.parse(body) as { type: string };
  const webhook = document.webhooks[event.type];
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
  const operation = operationOf(method, path);
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
