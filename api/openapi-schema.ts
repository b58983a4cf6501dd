// JSON Schema as the OpenAPI document has it, from Joi.
import type Joi from 'joi';
import { toJsonSchema } from '../lib/kernel/schema.ts';

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

/** The JSON Schema of a part of a request or answer, with its examples. */
export const schemaOf = (schema: Joi.Schema): Json =>
  refine(toJsonSchema(schema), schema.describe());
