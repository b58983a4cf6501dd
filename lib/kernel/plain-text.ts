// Text that people read: names, companies, notes. It holds nothing that a reader cannot see and that changes what he sees.
import type Joi from 'joi';
import { type Schema, text } from './schema.ts';

// Unicode's general categories Cc (control characters), Zl and Zp (line and paragraph separators) and Cs (half of a
// surrogate pair); of Cf the embeddings, overrides and isolates of the bidirectional algorithm (UAX #9), which let a
// text be read in another order than it has. The marks U+200E, U+200F and U+061C stay: Arabic and Hebrew need them.
const controls = /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}]/u;
const controlsBesideLines = /(?!\r?\n|\t)[\p{Cc}\p{Zl}\p{Zp}\p{Cs}]/u;
const directions = /[\u202A-\u202E\u2066-\u2069]/u;

const codePoint = (character: string): string =>
  `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;

const found = (pattern: RegExp, value: string): string | undefined => pattern.exec(value)?.[0];

/** What a text holds that plain text must not, in words that go on behind its name; undefined when it is plain. */
export const whyNotPlain = (value: string, lines: boolean): string | undefined => {
  const control = found(lines ? controlsBesideLines : controls, value);
  if (control !== undefined && /\p{Cs}/u.test(control)) return 'must be valid Unicode';
  if (control !== undefined) {
    return `must not hold ${codePoint(control)}: control characters${lines ? ' other than line ends and tabs' : ' and line ends'} are not allowed`;
  }
  const direction = found(directions, value);
  if (direction === undefined) return undefined;
  return `must not hold ${codePoint(direction)}: characters that reverse the direction of a text are not allowed`;
};

const plain = (lines: boolean): Schema<string> & Joi.StringSchema =>
  text().custom((value: string, helpers) => {
    const issue = whyNotPlain(value, lines);
    return issue === undefined ? value : helpers.message({ custom: issue });
  });

/** One line that people read: a name, a company, a short note. */
export const plainLine = () => plain(false);

/** Text of several lines that people read: a justification, a longer note. */
export const plainLines = () => plain(true);
