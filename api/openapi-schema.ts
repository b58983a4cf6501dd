// JSON Schema as the OpenAPI document has it, from Joi.
import type Joi from 'joi';
import { toJsonSchema } from '../lib/kernel/schema.ts';

type Json = Record<string, unknown>;

/** Joi's enum of a nullable field leaves null out, which forbids what its type allows. */
const withNull = (schema: Json): Json =>
  Array.isArray(schema.enum) && Array.isArray(schema.type) && schema.type.includes('null')
    ? { enum: [...schema.enum, null] }
    : {};

type Dependency = { rel: string; peers: (string | { key: string })[] };

/** "At least one of" and "exactly one of", which Joi's JSON Schema leaves out. */
const alternatives = (described: Joi.Description): Json =>
  Object.fromEntries(
    ((described.dependencies ?? []) as Dependency[]).flatMap(({ rel, peers }) => {
      const each = peers.map((peer) => ({
        required: [typeof peer === 'string' ? peer : peer.key],
      }));
      if (rel === 'or') return [['anyOf', each]];
      return rel === 'xor' ? [['oneOf', each]] : [];
    }),
  );

type Rule = { name: string; args?: { limit?: number } };

/** The decimals a number may have. */
const decimals = (described: Joi.Description): Json => {
  const rules = (described.rules ?? []) as Rule[];
  const most = rules.find(({ name }) => name === 'precision')?.args?.limit;
  return most === undefined ? {} : { multipleOf: 10 ** -most };
};

/** What a field says of its JSON Schema itself, because a check of its own stands behind it. */
const ownWords = (described: Joi.Description): Json =>
  Object.assign(
    {},
    ...((described.metas ?? []) as { jsonSchema?: Json }[]).map(
      ({ jsonSchema }) => jsonSchema ?? {},
    ),
  ) as Json;

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
    ...alternatives(described),
    ...decimals(described),
    ...ownWords(described),
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
