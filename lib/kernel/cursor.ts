// Cursors of lists: opaque to clients, an id inside, so that rows that arrive meanwhile move nothing.
import { crc32 } from 'node:zlib';
import { idBytes, idText } from './ids.ts';

const version = 2;
const idEnd = 17;
// Together 21 bytes: 28 characters, with no bits to spare in the last one.
const length = 21;

const checkOf = (bytes: Buffer): Buffer => {
  const check = Buffer.alloc(4);
  check.writeUInt32BE(crc32(bytes));
  return check;
};

/** The cursor that goes on behind the row with this id. */
export const cursorOf = (id: string): string => {
  const bytes = Buffer.concat([Buffer.from([version]), idBytes(id)]);
  return Buffer.concat([bytes, checkOf(bytes)]).toString('base64url');
};

/** The id in a cursor, or undefined when the text is none of ours, or is one no longer: it would go on anywhere. */
export const readCursor = (text: string): string | undefined => {
  const bytes = Buffer.from(text, 'base64url');
  if (bytes.length !== length || bytes[0] !== version) return undefined;
  const sound = checkOf(bytes.subarray(0, idEnd)).equals(bytes.subarray(idEnd));
  const written = bytes.toString('base64url') === text;
  return sound && written ? idText(bytes.subarray(1, idEnd)) : undefined;
};
