// Typed Joi: one schema gives the check, the TypeScript type and the JSON Schema.
import Joi from 'joi';

declare const typed: unique symbol;
declare const missing: unique symbol;

/** A Joi schema that knows the type it lets through. */
export type Schema<T> = Joi.AnySchema & { readonly [typed]?: T };
/** The same for a member that may be left out. */
export type Optional<T> = Schema<T> & { readonly [missing]: true };
export type Infer<S> = S extends Schema<infer T> ? T : never;

type Shape = Record<string, Joi.Schema>;
type OptionalKeys<S extends Shape> = {
  [K in keyof S]: S[K] extends { readonly [missing]: true } ? K : never;
}[keyof S];
type Simplify<T> = { [K in keyof T]: T[K] };
export type InferShape<S extends Shape> = Simplify<
  { [K in Exclude<keyof S, OptionalKeys<S>>]: Infer<S[K]> } & {
    [K in OptionalKeys<S>]?: Infer<S[K]>;
  }
>;

const optionalMark = 'optional';

/** Marks a member of `object()` as one that may be left out. */
export const optional = <T>(schema: Schema<T>): Optional<T> =>
  schema.optional().meta({ [optionalMark]: true }) as Optional<T>;

/** Marks a member that may be left out and is then `value`: whoever reads the checked object finds it there. */
export const withDefault = <T extends string | number | boolean>(
  schema: Schema<T>,
  value: T,
): Schema<T> =>
  schema
    .optional()
    .default(value)
    .meta({ [optionalMark]: true }) as Schema<T>;

// Read where Joi keeps it: describing every member of every object made a tenth of the start of a process.
const isOptional = (schema: Joi.Schema): boolean =>
  (schema.$_terms.metas as Record<string, unknown>[]).some((meta) => meta[optionalMark]);

/** An object with exactly these members; unknown ones are refused, all but `optional()` ones are required. */
export const object = <S extends Shape>(shape: S): Schema<InferShape<S>> & Joi.ObjectSchema =>
  Joi.object(
    Object.fromEntries(
      // Presence is put on each key because Joi does not export it from options to JSON Schema.
      Object.entries(shape).map(([name, schema]) => [
        name,
        isOptional(schema) ? schema : schema.required(),
      ]),
    ),
  ).unknown(false) as Schema<InferShape<S>> & Joi.ObjectSchema;

export const text = (): Schema<string> & Joi.StringSchema => Joi.string();
export const integer = (): Schema<number> & Joi.NumberSchema => Joi.number().integer();
export const decimal = (): Schema<number> & Joi.NumberSchema => Joi.number();
export const flag = (): Schema<boolean> & Joi.BooleanSchema => Joi.boolean();
export const oneOf = <const T extends string>(...values: T[]): Schema<T> & Joi.StringSchema =>
  Joi.string().valid(...values);
export const nullable = <T>(schema: Schema<T>): Schema<T | null> =>
  schema.allow(null) as Schema<T | null>;
export const list = <T>(items: Schema<T>): Schema<T[]> & Joi.ArraySchema =>
  Joi.array().items(items) as Schema<T[]> & Joi.ArraySchema;
/** An object with members of any name. */
export const record = (): Schema<Record<string, unknown>> & Joi.ObjectSchema =>
  Joi.object().unknown(true) as Schema<Record<string, unknown>> & Joi.ObjectSchema;
/** Any JSON value, for parts whose shape is somebody else's. */
export const anything = (): Schema<unknown> => Joi.any();

type JsonSchema = Record<string, unknown>;
type Exporting = {
  '~standard': { jsonSchema: { input(options: { target: string }): JsonSchema } };
};

/** The JSON Schema (2020-12, the dialect of OpenAPI 3.1) of a Joi schema. */
export const toJsonSchema = (schema: Joi.Schema): JsonSchema => {
  const { $schema: _, ...rest } = (schema as unknown as Exporting)['~standard'].jsonSchema.input({
    target: 'draft-2020-12',
  });
  return rest;
};
