// Checks a part of a request against its schema; what is wrong is said by field, and never repeats the value.
import type Joi from 'joi';
import { type FieldIssue, fail, invalid, type ServiceError } from '../lib/kernel/errors.ts';
import { namesPrototype } from '../lib/kernel/json-members.ts';

/** What Joi calls a phone number that is not in its canonical form. */
export const nationalPrefixIssue = 'string.nationalPrefix';

const messages: Joi.LanguageMessages = {
  'any.required': 'is required',
  'object.unknown': 'is not allowed',
  'object.base': 'must be a JSON object',
  'string.base': 'must be a string',
  'string.empty': 'must not be empty',
  'string.pattern.base': 'does not have the required form',
  'string.isoDate': 'must be a date and time as RFC 3339 writes it',
  'number.base': 'must be a number',
  'number.integer': 'must be a whole number',
  'boolean.base': 'must be true or false',
};

const ready = new WeakMap<Joi.Schema, Joi.Schema>();

/** The schema with our preferences built in, made once: Joi merges them anew for every call otherwise. */
const prepared = (schema: Joi.Schema, convert: boolean): Joi.Schema => {
  const known = ready.get(schema);
  if (known) return known;
  const made = schema.prefs({
    abortEarly: false,
    // Text stays text in a body; a query has nothing but text.
    convert,
    errors: { label: false, wrap: { array: false, string: false } },
    messages,
  });
  ready.set(schema, made);
  return made;
};

const toIssue =
  (part: string) =>
  (detail: Joi.ValidationErrorItem): FieldIssue => ({
    field: detail.path.length > 0 ? detail.path.join('.') : part,
    issue: detail.message.trim(),
  });

// The contract has a code of its own for a phone number; beside other mistakes it is one of several.
const refusalOf = (details: readonly Joi.ValidationErrorItem[], part: string): ServiceError => {
  const issues = details.map(toIssue(part));
  const [issue] = issues;
  const onlyPhone = issue && details.every(({ type }) => type === nationalPrefixIssue);
  if (!onlyPhone) return invalid(...issues);
  return fail('INVALID_PHONE', { details: issues }, { message: `The number ${issue.issue}.` });
};

/**
 * Returns the checked value of a body, path or query.
 * @throws VALIDATION_ERROR with one entry per field that is wrong; INVALID_PHONE, likewise, when only a phone number
 * is wrong and for its national prefix alone
 */
export const validate = (
  schema: Joi.Schema,
  value: unknown,
  part: { name: 'body' | 'path' | 'query' },
): unknown => {
  // Joi passes this name over instead of refusing it.
  if (namesPrototype(value)) throw invalid({ field: '__proto__', issue: 'is not allowed' });
  const checked = prepared(schema, part.name === 'query').validate(value);
  if (checked.error) throw refusalOf(checked.error.details, part.name);
  return checked.value;
};
