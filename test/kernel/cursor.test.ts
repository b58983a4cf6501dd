// Cursors: each leads back to its id, and whatever was done to one is noticed.
import test from 'ava';
import fc from 'fast-check';
import { cursorOf, readCursor } from '../../lib/kernel/cursor.ts';
import { newId } from '../../lib/kernel/ids.ts';

test('a cursor leads back to its id', (t) => {
  for (const id of Array.from({ length: 100 }, newId)) t.is(readCursor(cursorOf(id)), id);
});

const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/= ';

test('a cursor with a character changed, left out, added or moved is none', (t) => {
  const cursor = cursorOf(newId());
  const places = fc.nat({ max: cursor.length - 1 });
  const garbled = fc.oneof(
    fc
      .tuple(places, fc.constantFrom(...letters))
      .map(([at, letter]) => cursor.slice(0, at) + letter + cursor.slice(at + 1)),
    places.map((at) => cursor.slice(0, at) + cursor.slice(at + 1)),
    fc
      .tuple(places, fc.constantFrom(...letters))
      .map(([at, letter]) => cursor.slice(0, at) + letter + cursor.slice(at)),
    places.map((at) => cursor.slice(at) + cursor.slice(0, at)),
    fc.string(),
  );
  fc.assert(
    fc.property(garbled, (text) => {
      t.is(readCursor(text), text === cursor ? readCursor(cursor) : undefined, text);
    }),
    { numRuns: 2_000 },
  );
  t.is(readCursor(cursor.toUpperCase()), undefined);
});
