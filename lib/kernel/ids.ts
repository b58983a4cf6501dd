// Ids: UUIDv7 everywhere, so that an id carries its creation time and lists sort by it.
import { createHash } from 'node:crypto';
import { uuidv7 } from 'uuidv7';

/** A fresh UUIDv7 in canonical text; monotonic within a process. */
export const newId = (): string => uuidv7();

const uuidText = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** Whether a text is an id as `newId` writes it. */
export const isId = (text: string): boolean => uuidText.test(text);

/** The creation time in milliseconds that a UUIDv7 carries. */
export const idTime = (id: string): number => Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);

/** The smallest id that anything made at `at` (ms) can have: with it a time becomes a bound on ids. */
export const idAt = (at: number): string => {
  const hex = at.toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
};

/** The 16 bytes of an id, as MySQL keeps it. */
export const idBytes = (id: string): Buffer => Buffer.from(id.replaceAll('-', ''), 'hex');

/** The canonical text of 16 id bytes. */
export const idText = (bytes: Buffer): string => {
  const hex = bytes.toString('hex');
  return [8, 12, 16, 20].reduceRight((text, at) => `${text.slice(0, at)}-${text.slice(at)}`, hex);
};

const messagePrefix = 'otp_';

/** The public form of a message's id. */
export const toMessageId = (id: string): string => messagePrefix + id;

/** The id inside a public message_id, or undefined when the text is not one. */
export const fromMessageId = (text: string): string | undefined => {
  const id = text.startsWith(messagePrefix) ? text.slice(messagePrefix.length) : '';
  return isId(id) ? id : undefined;
};

/** An id that the same words always give: what makes a repeated event recognisable. */
export const derivedId = (...words: string[]): string =>
  createHash('sha256').update(words.join('\n')).digest('hex').slice(0, 32);
