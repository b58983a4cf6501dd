// Cursors of lists: opaque to clients, an id inside, so that rows that arrive meanwhile move nothing.
import { idBytes, idText } from './ids.ts';

const version = 1;
const idLength = 16;

/** The cursor that goes on behind the row with this id. */
export const cursorOf = (id: string): string =>
  Buffer.concat([Buffer.from([version]), idBytes(id)]).toString('base64url');

/** The id in a cursor, or undefined when the text is none of ours. */
export const readCursor = (text: string): string | undefined => {
  const bytes = Buffer.from(text, 'base64url');
  const sound = bytes.length === 1 + idLength && bytes[0] === version;
  return sound && bytes.toString('base64url') === text ? idText(bytes.subarray(1)) : undefined;
};
