// Joi fields that several routes share: each once, with the words a caller reads when it is wrong.
import type Joi from 'joi';
import { readCursor } from '../lib/kernel/cursor.ts';
import { fail } from '../lib/kernel/errors.ts';
import { isId } from '../lib/kernel/ids.ts';
import { readMoment } from '../lib/kernel/moment.ts';
import { e164Pattern, phoneFacts } from '../lib/kernel/phone.ts';
import { plainLine } from '../lib/kernel/plain-text.ts';
import {
  flag,
  integer,
  list,
  nullable,
  object,
  oneOf,
  optional,
  type Schema,
  text,
  withDefault,
} from '../lib/kernel/schema.ts';
import { failureReasons } from '../lib/messages/rules.ts';
import { nationalPrefixIssue } from './validate.ts';

export const phone = () =>
  text()
    .pattern(e164Pattern)
    .description('Phone number in E.164: a plus sign, a first digit 1-9, then 6 to 14 more digits.')
    .example('+14155550123')
    .messages({
      'string.pattern.base':
        'must be E.164: a plus sign, a first digit 1-9, then 6 to 14 more digits',
    });

/**
 * A phone number as a request brings it: only its canonical form is taken, so that one recipient is one recipient in
 * every limit. Alone, this mistake is INVALID_PHONE (see validate.ts).
 */
export const phoneInput = () =>
  phone()
    .custom((value: string, helpers) => {
      // What is no E.164 is said by the pattern; guessing the number meant would repeat it in the answer.
      if (!e164Pattern.test(value)) return value;
      const { canonical } = phoneFacts(value);
      return canonical === value ? value : helpers.error(nationalPrefixIssue, { canonical });
    })
    .messages({
      [nationalPrefixIssue]:
        'has a national prefix after its country code: the number is written {{#canonical}}',
    });

export const code = () =>
  text()
    .pattern(/^\d{6}$/)
    .description('Exactly six digits.')
    .example('493027')
    .messages({ 'string.pattern.base': 'must be exactly 6 digits' });

/** The code of a forgotten password. */
export const resetCode = () =>
  text()
    .pattern(/^\d{8}$/)
    .description('Exactly eight digits.')
    .example('49302718')
    .messages({ 'string.pattern.base': 'must be exactly 8 digits' });

/** An id in its one written form: no braces, no other separators, always hyphens. */
export const uuid = () =>
  text().guid({ separator: '-', wrapper: false }).messages({ 'string.guid': 'must be a UUID' });

/** The id that a path names. @throws NOT_FOUND for a text that can be no id */
export const idNamed = (given: string): string => {
  const id = given.toLowerCase();
  if (!isId(id)) throw fail('NOT_FOUND');
  return id;
};

export const messageId = () =>
  text().description('Id of a message.').example('otp_0192f0c1-7a3b-7c4d-8e5f-0123456789ab');

export const messageStatus = () =>
  oneOf('sent', 'verified', 'failed', 'expired').description('State of the message.');

/** Why a message failed: the catalogue's names; the documentation has their meanings. */
export const failureReason = () =>
  nullable(oneOf(...Object.keys(failureReasons))).description('Why it failed; null: it did not.');

export const channelName = () => oneOf('whatsapp', 'telegram').description('Channel.');

export const timestamp = () =>
  text().isoDate().description('Time in UTC (RFC 3339).').example('2026-11-20T12:00:00.000Z');

export const nullableTimestamp = () => nullable(timestamp());

/** Text that is kept as it was typed: half a surrogate pair cannot be, and all such halves would be alike. */
export const typed = () =>
  text()
    .custom((value: string, helpers) =>
      value.isWellFormed() ? value : helpers.error('string.unicode'),
    )
    .messages({ 'string.unicode': 'must be valid Unicode' });

export const email = () =>
  plainLine()
    .email({ tlds: false })
    .max(254)
    .description('E-mail address, up to 254 characters.')
    .example('dev@example.com')
    .messages({ 'string.email': 'must be an e-mail address' });

export const password = () =>
  typed().min(8).max(128).description('Password, 8 to 128 characters, taken as typed.');

export const mode = () => oneOf('live', 'test').description('live goes out; test is the sandbox.');

/** What every list takes; `max` is the most one page holds. */
export const listQuery = (max: number) => ({
  limit: withDefault(integer().min(1).max(max).description('Items per page.'), Math.min(50, max)),
  before: optional(cursor()),
});

/** A cursor of a list, read into the id in it. */
const cursor = () =>
  text()
    .custom((value: string, helpers) => readCursor(value) ?? helpers.error('string.cursor'))
    .description('The next_before of the page before this one.')
    .messages({ 'string.cursor': 'must be a next_before of this list' });

/** RFC 3339 with its offset, or a date, which is its midnight in UTC; read into milliseconds. */
export const moment = () =>
  text()
    .custom((value: string, helpers) => readMoment(value) ?? helpers.error('string.moment'))
    .meta({ jsonSchema: { anyOf: [{ format: 'date-time' }, { format: 'date' }] } })
    .messages({
      'string.moment': 'must be RFC 3339 with an offset, or a date',
    }) as unknown as Schema<number> & Joi.StringSchema;

/** A page of a list: newest first; `next_before` is null at the end. */
export const page = <T>(item: Schema<T>) =>
  object({
    items: list(item),
    next_before: nullable(text()).description('Give it as `before` to go on; null at the end.'),
  });

export const seconds = () => integer().min(0);

export const yesNo = () => flag();
