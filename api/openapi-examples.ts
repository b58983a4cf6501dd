// Examples of the OpenAPI document: every body, answer and error, made from the schemas so that they cannot differ.
import { type ErrorCode, type ErrorExtras, errorCatalogue } from '../lib/kernel/errors.ts';
import { magicExtras } from '../lib/otp/sandbox.ts';
import { exampleValues } from './openapi-values.ts';

type Json = Record<string, unknown>;

const typesOf = (schema: Json): unknown[] =>
  Array.isArray(schema.type) ? schema.type : [schema.type];

const typeOf = (value: unknown): string => {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return typeof value;
};

const hasType = (schema: Json, value: unknown): boolean => {
  const types = typesOf(schema);
  if (typeOf(value) !== 'number') return types.includes(typeOf(value));
  return types.includes('number') || (types.includes('integer') && Number.isInteger(value));
};

const isWithin = (schema: Json, value: unknown): boolean => {
  const { minimum = -Infinity, maximum = Infinity, minLength = 0, maxLength = Infinity } = schema;
  if (typeof value === 'number') return value >= Number(minimum) && value <= Number(maximum);
  if (typeof value !== 'string') return true;
  return value.length >= Number(minLength) && value.length <= Number(maxLength);
};

const fits = (schema: Json, value: unknown): boolean =>
  hasType(schema, value) &&
  isWithin(schema, value) &&
  (!Array.isArray(schema.enum) || schema.enum.includes(value)) &&
  (schema.pattern === undefined || new RegExp(String(schema.pattern)).test(String(value)));

/** Any number or truth will do where no name says more; a text that nobody chose would be noise. */
const byType = (schema: Json): unknown => {
  const types = typesOf(schema);
  if (types.includes('boolean')) return true;
  if (!types.includes('integer') && !types.includes('number')) return null;
  const { minimum = 0, maximum = Infinity } = schema;
  return Math.min(Math.max(Number(minimum), 1), Number(maximum));
};

const scalar = (schema: Json, name: string): unknown => {
  const own = Array.isArray(schema.examples) ? schema.examples : [];
  const values = Array.isArray(schema.enum) ? schema.enum : [];
  // All times of a schema have one example; by their names they tell a story.
  const named = exampleValues[name] ?? [];
  const candidates = name.endsWith('_at') ? [...named, ...own] : [...own, ...named];
  const found = [...candidates, ...values].find((value) => fits(schema, value));
  return found === undefined ? byType(schema) : found;
};

/** Which members of the outermost object an example shows. */
export type Shown = (name: string) => boolean;

/**
 * An example of `schema`, the schema of the field `name`. What has none by its name, its schema or its enum is null,
 * which a test finds.
 */
export const exampleOf = (schema: Json, name = '', shown: Shown = () => true): unknown => {
  if (schema.properties) {
    const entries = Object.entries(schema.properties as Record<string, Json>)
      .filter(([member]) => shown(member))
      .map(([member, inner]) => [member, exampleOf(inner, member)]);
    return Object.fromEntries(entries);
  }
  if (!schema.items) return scalar(schema, name);
  return exampleValues[name]?.length === 0 ? [] : [exampleOf(schema.items as Json, name)];
};

/** 2026-11-20T12:00:00Z, when every example happens. */
const exampleTime = 1_795_176_000_000;

const extrasOf = (code: ErrorCode): ErrorExtras => {
  if (code === 'VALIDATION_ERROR') {
    const issue = 'must be E.164: a plus sign, a first digit 1-9, then 6 to 14 more digits';
    return { details: [{ field: 'phone', issue }] };
  }
  if (code === 'CHANNEL_NOT_LINKED') {
    return { telegram_bot_url: 'https://t.me/tessera_bot?start=kZ0p' };
  }
  const extras = magicExtras(code, exampleTime);
  return extras.reason === undefined ? extras : { ...extras, reason: 'recipient_protection' };
};

/** The body of an answer with `code`. */
export const errorExample = (code: ErrorCode): Json => ({
  error: {
    ...{ code, message: errorCatalogue[code].message, ...extrasOf(code) },
    request_id: '0192f0c1-7a3b-7c4d-8e5f-0123456789ab',
  },
});

/** Those of `codes`, for the components of the document. */
export const errorExamples = (codes: ReadonlySet<ErrorCode>): Json =>
  Object.fromEntries(
    [...codes].map((code) => [
      code,
      { summary: errorCatalogue[code].message, value: errorExample(code) },
    ]),
  );
