// The schema of an answer made strict: every property there, and none besides.
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormatsModule from 'ajv-formats';
import { openApiDocument } from '../../api/openapi.ts';
import { routes } from '../../api/routes.ts';

type Json = Record<string, unknown>;

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Each object of the schema has exactly the properties that it names. */
const strict = (schema: unknown): unknown => {
  if (Array.isArray(schema)) return schema.map(strict);
  if (!isObject(schema)) return schema;
  const inner = Object.fromEntries(
    Object.entries(schema).map(([name, value]) => [name, strict(value)]),
  );
  if (!isObject(inner.properties)) return inner;
  return { ...inner, required: Object.keys(inner.properties), additionalProperties: false };
};

const formats = addFormatsModule as unknown as (instance: Ajv2020) => void;

/** Checks the `data` of a 200 of GET `path`; answers what is wrong, or ''. */
export const strictCheck = (path: string): ((data: unknown) => string) => {
  const document = openApiDocument(routes) as unknown as {
    paths: Record<string, Record<string, { responses: Record<string, Json> }>>;
    components: Json;
  };
  const answer = document.paths[path]?.get?.responses['200'] as {
    content: Record<string, { schema: Json }>;
  };
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  formats(ajv);
  const schema = strict(answer.content['application/json']?.schema) as Json;
  const validate = ajv.compile({ ...schema, components: document.components });
  return (data) => (validate({ data }) ? '' : ajv.errorsText(validate.errors));
};
