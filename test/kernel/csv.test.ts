// CSV: what RFC 4180 reads back is what was written, and nothing in it is a formula.
import test from 'ava';
import fc from 'fast-check';
import { csvLine } from '../../lib/kernel/csv.ts';

/** Reads one line as RFC 4180 says. */
const readLine = (line: string): string[] => {
  const cells: string[] = [];
  const pattern = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/gy;
  for (const [, quoted, plain] of line.matchAll(pattern)) {
    cells.push(quoted === undefined ? (plain ?? '') : quoted.replaceAll('""', '"'));
  }
  return cells;
};

const nasty = fc.string({ unit: fc.constantFrom(...',"\r\n\t=+-@a1 ;\'') });

test('what is read back is what was written, but for the apostrophe before a formula', (t) => {
  fc.assert(
    fc.property(fc.array(fc.oneof(nasty, fc.string()), { minLength: 1, maxLength: 6 }), (cells) => {
      const read = readLine(csvLine(cells));
      t.is(read.length, cells.length);
      for (const [index, cell] of cells.entries()) {
        t.true(read[index] === cell || read[index] === `'${cell}`);
        if (read[index] === cell) t.false(/^[=+\-@\t\r]/.test(cell) && !/^\+\d+$/.test(cell), cell);
      }
    }),
    { numRuns: 1_000 },
  );
});

test('numbers of phones and of money stay numbers, and nothing is an empty cell', (t) => {
  t.is(csvLine(['+14155550123', -0.05, null, 0.000001]), '+14155550123,-0.05,,0.000001\r\n');
  t.is(csvLine(['=1+1', '@x', '+1 415', '-2']), "'=1+1,'@x,'+1 415,'-2\r\n");
  t.is(csvLine(['a"b', 'c,d', 'e\r\nf']), '"a""b","c,d","e\r\nf"\r\n');
});
