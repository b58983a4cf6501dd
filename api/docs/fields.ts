// A JSON Schema as people read it: fields with type, need and meaning.
import type { Json } from './operations.ts';
import { code, table } from './page.ts';

/** Its type in words. */
export const typeText = (schema: Json): string => {
  const types = [schema.type ?? 'any'].flat().map(String);
  const items = schema.items as Json | undefined;
  return types
    .map((type) => (type === 'array' && items ? `array of ${typeText(items)}` : type))
    .join(' or ');
};

const boundsText = (schema: Json): string => {
  const { enum: values, minimum, maximum, minLength, maxLength, default: standard } = schema;
  const listed = Array.isArray(values) && values.length <= 14 && values.length > 0;
  const between = (low: unknown, high: unknown, unit: string): string => {
    if (low !== undefined && low === high) return `Exactly ${low}${unit}.`;
    if (low !== undefined && high !== undefined) return `${low} to ${high}${unit}.`;
    if (high !== undefined) return `At most ${high}${unit}.`;
    return '';
  };
  return [
    listed ? `One of ${values.map((value) => code(String(value))).join(', ')}.` : '',
    between(minimum, maximum, ''),
    maxLength === undefined
      ? ''
      : between(minLength === 1 ? undefined : minLength, maxLength, ' characters'),
    standard === undefined ? '' : `Default ${code(String(standard))}.`,
  ]
    .filter(Boolean)
    .join(' ');
};

/** What it is and what bounds it. */
export const aboutOf = (schema: Json): string =>
  [schema.description, boundsText(schema)].filter(Boolean).map(String).join(' ');

type Field = { name: string; schema: Json; required: boolean };

/** The fields of an object, and those inside its members, by their paths. */
const fieldsOf = (schema: Json, prefix = ''): Field[] => {
  const required = (schema.required ?? []) as string[];
  return Object.entries((schema.properties ?? {}) as Record<string, Json>).flatMap(
    ([name, inner]) => [
      { name: prefix + name, schema: inner, required: required.includes(name) },
      ...fieldsOf(inner, `${prefix}${name}.`),
      ...(inner.items ? fieldsOf(inner.items as Json, `${prefix}${name}[].`) : []),
    ],
  );
};

/** The fields of an object as a table. */
export const fieldTable = (schema: Json): string =>
  table(
    ['Field', 'Type', 'Required', 'About'],
    fieldsOf(schema).map(({ name, schema: inner, required }) => [
      code(name),
      typeText(inner),
      required ? 'yes' : 'no',
      aboutOf(inner),
    ]),
  );
